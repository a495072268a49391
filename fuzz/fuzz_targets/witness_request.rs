#![no_main]

libfuzzer_sys::fuzz_target!(|bytes: &[u8]| bulla_witness::fuzzing::witness_request(bytes));
