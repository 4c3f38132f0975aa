//! Recordings of CPU demand as Arrow tables.

use std::path::PathBuf;
use std::sync::Arc;

use arrow_array::{ArrayRef, UInt32Array, UInt64Array};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use reveille_usage::{Demand, Sample, Usage};

use crate::errors::of_file;
use crate::table::Table;

/// A recording of one group's demand for CPU time.
#[pyclass(frozen, module = "reveille")]
pub struct Recording(Usage);

#[pymethods]
impl Recording {
    /// Reads what `reveille plan` reads: Parquet, CSV of requests, JSON of Prometheus.
    #[new]
    fn new(py: Python<'_>, path: PathBuf) -> PyResult<Recording> {
        let read = py.detach(|| Usage::read(&path));
        read.map(Recording).map_err(|error| of_file(py, &error))
    }

    #[getter]
    fn name(&self) -> &str {
        &self.0.name
    }

    #[getter]
    fn span_ns(&self) -> u64 {
        self.0.span_ns
    }

    #[getter]
    fn threads(&self) -> u32 {
        self.0.threads
    }

    #[getter]
    fn host_cpus(&self) -> Option<u32> {
        self.0.host_cpus
    }

    #[getter]
    fn warnings(&self) -> Vec<String> {
        self.0.warnings.clone()
    }

    /// Pieces of work: `at_ns`, `cpu_ns`, `thread`, `done_ns`.
    #[getter]
    fn demands(&self) -> PyResult<Table> {
        let all = &self.0.demands;
        let ns = |of: fn(&Demand) -> Option<u64>| -> ArrayRef {
            Arc::new(all.iter().map(of).collect::<UInt64Array>())
        };
        let threads: ArrayRef =
            Arc::new(all.iter().map(|d| Some(d.thread)).collect::<UInt32Array>());
        table(vec![
            ("at_ns", ns(|d| Some(d.at_ns))),
            ("cpu_ns", ns(|d| Some(d.cpu_ns))),
            ("thread", threads),
            ("done_ns", ns(|d| d.done_ns)),
        ])
    }

    /// Readings of counters, as `docs/usage.md` names them.
    #[getter]
    fn samples(&self) -> PyResult<Table> {
        let all = &self.0.samples;
        let counts = |of: fn(&Sample) -> u64| -> ArrayRef {
            Arc::new(all.iter().map(|s| Some(of(s))).collect::<UInt64Array>())
        };
        let runnable: ArrayRef = Arc::new(all.iter().map(|s| s.runnable).collect::<UInt32Array>());
        table(vec![
            ("at_ns", counts(|s| s.at_ns)),
            ("runtime_ns", counts(|s| s.runtime_ns)),
            ("runnable", runnable),
            ("nr_periods", counts(|s| s.nr_periods)),
            ("nr_throttled", counts(|s| s.nr_throttled)),
            ("throttled_ns", counts(|s| s.throttled_ns)),
        ])
    }

    fn __repr__(&self) -> String {
        let Usage { name, span_ns, demands, samples, .. } = &self.0;
        let seconds = *span_ns as f64 / 1e9;
        let (demands, samples) = (demands.len(), samples.len());
        format!("<reveille.Recording {name}: {seconds} s, {demands} demands, {samples} samples>")
    }
}

fn table(columns: Vec<(&str, ArrayRef)>) -> PyResult<Table> {
    let columns = columns.into_iter().map(|(name, array)| (name.to_owned(), array)).collect();
    Table::new(columns).map_err(|error| PyValueError::new_err(error.to_string()))
}
