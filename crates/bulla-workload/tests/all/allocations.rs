use crate::generator;
use bulla_testkit::allocator::allocations;
use bulla_workload::Workload;
use std::hint::black_box;

#[test]
fn an_entry_takes_no_allocation_once_the_buffers_have_grown() {
    for workload in Workload::ALL {
        let mut generator = generator(workload);
        let mut generate = || (0..10_000).for_each(|_| drop(black_box(generator.next_entry())));
        generate();
        let start = allocations();
        generate();
        assert_eq!(allocations() - start, 0, "{workload}");
    }
}
