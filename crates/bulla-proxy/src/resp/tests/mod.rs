//! What must hold of the parsers: known answers of the protocol's specification and of a server, properties, another parser, and
//! hostile input.

mod hostile;
mod replies;
mod requests;
mod server;

#[global_allocator]
static ALLOCATOR: bulla_testkit::allocator::Counting = bulla_testkit::allocator::Counting;
