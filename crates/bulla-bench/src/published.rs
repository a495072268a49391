//! What was published of the systems that the workloads come from.

/// A figure from elsewhere, on another machine.
pub(crate) struct Published {
    /// The workload that it belongs to.
    pub(crate) workload: &'static str,
    pub(crate) by: &'static str,
    pub(crate) entries_per_second: f64,
    pub(crate) gib_per_second: Option<f64>,
    /// Rows against bytes on disk.
    pub(crate) ratio_to_rows: Option<f64>,
    /// Text against bytes on disk.
    pub(crate) ratio_to_text: Option<f64>,
    pub(crate) memory_mib: Option<f64>,
}

/// Bytes of a MB, in MiB.
const MB: f64 = 1.0 / 1.048_576;

const fn loggr(
    workload: &'static str,
    by: &'static str,
    millions: f64,
    ratio: f64,
    memory_mb: f64,
) -> Published {
    Published {
        workload,
        by,
        entries_per_second: millions * 1e6,
        gib_per_second: None,
        ratio_to_rows: None,
        ratio_to_text: Some(ratio),
        memory_mib: Some(memory_mb * MB),
    }
}

/// The thesis: 16 producers and 16 writers on 16 processors, zlib at level 1, AES-256-GCM, synced at rotation. Loggr: 6
/// processors, plaintext, no integrity.
pub(crate) const PUBLISHED: [Published; 6] = [
    Published {
        workload: "gdpr",
        by: "thesis, 16+16 threads",
        entries_per_second: 533_711.0,
        gib_per_second: Some(2.08),
        ratio_to_rows: Some(1.0 / 0.109),
        ratio_to_text: None,
        memory_mib: None,
    },
    loggr("web", "Loggr, 6 callers", 21.71, 5.16, 105.0),
    loggr("web", "Loggr, 1 caller", 8.47, 4.66, 16.0),
    loggr("web-adversarial", "Loggr, 6 callers", 5.23, 2.60, 1500.0),
    loggr("web-adversarial", "Loggr, 1 caller", 1.73, 2.14, 16.0),
    loggr("web-adversarial", "Loggr, max, 1 caller", 1.49, 5.99, 3500.0),
];

/// The log integrity benchmark, on SQLite.
pub(crate) const INTEGRITY: &str = "\
published: A 0.02 ms a log; C 15.4 ms; storage B +35 %, C +709 % at 50,000 logs; verifying one log B 0.09 ms, C 0.014 ms \
(a look-up of the leaf, no proof)";
