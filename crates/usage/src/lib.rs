//! Recordings of a group's demand for CPU time. Recorders produce them, files hold them, and the
//! planner and replays start from them.

mod averaged;
mod csv_import;
mod decimal;
mod file;
mod host_load;
mod parquet_file;
mod prometheus;
mod random;
mod recording;
mod replay;
mod sampled;
mod statistics;
mod throttled;
mod unthrottled;
mod valid;

pub use csv_import::{CsvOptions, DEFAULT_THREADS};
pub use file::{Format, UsageFile};
pub use host_load::NOTABLE_OTHERS;
pub use parquet_file::pages::{Sound as SoundPages, check_place};
pub use prometheus::Select;
pub use recording::{Charging, Demand, HeldBack, HostLoad, Ns, Origin, Sample, Usage};
pub use reveille_place::InputError;
pub use statistics::{PeriodUse, Summary};
pub use throttled::Throttling;
pub use unthrottled::Unthrottled;
pub use valid::{MAX_ROWS, MAX_SPAN_NS, MAX_THREADS};
