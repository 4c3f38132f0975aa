//! Recordings of containers from a server with Prometheus' HTTP API: Prometheus, Thanos, Mimir,
//! VictoriaMetrics. Finds the containers, and reads their raw counters in parts of a day.

mod containers;
mod error;
mod range;
mod server;

pub use containers::{Container, Selector, Workload};
pub use error::ServerError;
pub use server::{Access, Server, Span};
