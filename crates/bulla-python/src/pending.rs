//! An exception that is on its way while something is let go of.
#![allow(
    unsafe_code,
    reason = "Python's C interface alone takes away an exception of whatever kind, and puts it back as it was"
)]

use pyo3::ffi;
use pyo3::prelude::*;
use std::marker::PhantomData;
use std::ptr;

/// The exception that this thread is raising, if it is raising one, taken away as long as this lives: a call into Python must not begin while
/// there is one, and whoever raised it is to get it all the same.
///
/// It is no [`PyErr`]: taking one that tells of a panic would go on with that panic.
pub(crate) struct Pending<'py> {
    class: *mut ffi::PyObject,
    value: *mut ffi::PyObject,
    traceback: *mut ffi::PyObject,
    attached: PhantomData<Python<'py>>,
}

impl<'py> Pending<'py> {
    pub(crate) fn take(_py: Python<'py>) -> Self {
        let (mut class, mut value, mut traceback) = (ptr::null_mut(), ptr::null_mut(), ptr::null_mut());
        // SAFETY: this thread is attached, and these are places for what is taken; null where there is nothing.
        unsafe { ffi::PyErr_Fetch(&raw mut class, &raw mut value, &raw mut traceback) };
        Pending { class, value, traceback, attached: PhantomData }
    }
}

impl Drop for Pending<'_> {
    fn drop(&mut self) {
        // SAFETY: this thread is attached as long as `'py` lasts, and what was taken is given back, once.
        unsafe { ffi::PyErr_Restore(self.class, self.value, self.traceback) };
    }
}
