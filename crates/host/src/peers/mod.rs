//! The classical programs of this field as native loops: the same system calls for each
//! message, the same tasks and the same start as the originals; what is counted lies in
//! shared memory, a cache line for each task.

mod channel;
mod context_switch;
mod crew;
mod gate;
mod hackbench;
mod limits;
mod lines;
mod phase;
mod pipe;
mod request_response;
mod tasks;
mod tbench;
mod timed;

pub use channel::Transport;
pub use context_switch::{Binding, ContextSwitch, ContextSwitchRun};
pub use crew::Mode;
pub use hackbench::{Hackbench, HackbenchRun};
pub use pipe::{SchedPipe, SchedPipeRun};
pub use request_response::{Protocol, RequestResponse, RequestResponseRun};
pub use tasks::{Spread, Tasks};
pub use tbench::{Tbench, TbenchOperation, TbenchRun};
pub use timed::{PairRate, Second, Span, Timed};
