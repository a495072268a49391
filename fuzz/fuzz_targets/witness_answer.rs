#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bulla::fuzzing::witness_answer(bytes));
