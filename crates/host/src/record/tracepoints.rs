//! The scheduler's tracepoints: their ids and field offsets on this kernel, from their `format`
//! files, and the decoding of their events.

use std::fs;
use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use reveille_measure::Ns;
use rustix::mount::{FsMountFlags, FsOpenFlags, MountAttrFlags, fsconfig_create, fsmount, fsopen};

use crate::error::{HostError, Result};

/// Mount points of tracefs; the second is the older one.
const PLACES: [&str; 2] = ["/sys/kernel/tracing", "/sys/kernel/debug/tracing"];

/// Bits of `prev_state` for a sleeping, stopped or dead thread. A higher bit marks a preempted
/// thread, which is still runnable.
const NOT_RUNNABLE: u64 = 0xff;
/// Bits for a thread that will never run again: dead, zombie.
const DEAD: u64 = 0x30;

/// How a thread left its CPU.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Left {
    /// Preempted, throttled or yielded: still runnable.
    Runnable,
    Blocked,
    Dead,
}

/// A decoded event. Threads are identified by their ids.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Kind {
    /// A context switch; 0 is the idle thread.
    Switch { prev: u32, left: Left, next: u32 },
    /// A thread becomes runnable, for the first time or again.
    Wakeup { thread: u32 },
    /// A thread was forked.
    Fork { parent: u32, child: u32 },
    /// Threads moved to another task group.
    Moved,
    /// A thread belongs to the recorded group from now on.
    Entered { thread: u32 },
    /// Events of this CPU were lost before this point.
    Lost,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Event {
    /// On the monotonic clock.
    pub at_ns: Ns,
    pub cpu: u32,
    pub kind: Kind,
}

/// A field of 4 or 8 bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct Field {
    offset: usize,
    size: usize,
}

impl Field {
    fn read(self, fields: &[u8]) -> Option<u64> {
        let bytes = fields.get(self.offset..self.offset + self.size)?;
        match self.size {
            4 => Some(u64::from(u32::from_ne_bytes(bytes.try_into().ok()?))),
            _ => Some(u64::from_ne_bytes(bytes.try_into().ok()?)),
        }
    }

    fn id(self, fields: &[u8]) -> Option<u32> {
        self.read(fields).map(|value| value as u32)
    }
}

/// The tracepoints needed, as this kernel has them.
#[derive(Debug)]
pub(super) struct Tracepoints {
    switch: u16,
    prev: Field,
    prev_state: Field,
    next: Field,
    wakeup: u16,
    woken: Field,
    wakeup_new: u16,
    new: Field,
    fork: u16,
    parent: Field,
    child: Field,
    /// Missing in some kernels.
    moved: Option<u16>,
}

impl Tracepoints {
    /// Reads their formats; as root, temporarily mounts tracefs where it is not mounted.
    pub fn find() -> Result<Tracepoints> {
        let place = PLACES.iter().map(Path::new).find(|place| place.join("events/sched").is_dir());
        if let Some(place) = place {
            return Tracepoints::read(place);
        }
        match mounted() {
            Some(mount) => {
                Tracepoints::read(&Path::new("/proc/self/fd").join(mount.as_raw_fd().to_string()))
            }
            None => Tracepoints::read(Path::new(PLACES[0])),
        }
    }

    fn read(place: &Path) -> Result<Tracepoints> {
        let event = |name: &str| Format::read(place.join("events").join(name).join("format"));
        let (switch, wakeup) = (event("sched/sched_switch")?, event("sched/sched_wakeup")?);
        let new = event("sched/sched_wakeup_new")?;
        let fork = event("sched/sched_process_fork")?;
        Ok(Tracepoints {
            switch: switch.id,
            prev: switch.field("prev_pid")?,
            prev_state: switch.field("prev_state")?,
            next: switch.field("next_pid")?,
            wakeup: wakeup.id,
            woken: wakeup.field("pid")?,
            wakeup_new: new.id,
            new: new.field("pid")?,
            fork: fork.id,
            parent: fork.field("parent_pid")?,
            child: fork.field("child_pid")?,
            moved: event("cgroup/cgroup_attach_task").ok().map(|format| format.id),
        })
    }

    /// Their ids for perf_event_open(2).
    pub fn ids(&self) -> Vec<u64> {
        let always = [self.switch, self.wakeup, self.wakeup_new, self.fork];
        always.into_iter().chain(self.moved).map(u64::from).collect()
    }

    /// Decodes an event; `None` for another tracepoint.
    pub fn decode(&self, fields: &[u8]) -> Option<Kind> {
        // Every event begins with its id.
        let id = u16::from_ne_bytes(fields.get(..2)?.try_into().ok()?);
        if id == self.switch {
            let left = match self.prev_state.read(fields)? & NOT_RUNNABLE {
                0 => Left::Runnable,
                state if state & DEAD != 0 => Left::Dead,
                _ => Left::Blocked,
            };
            return Some(Kind::Switch {
                prev: self.prev.id(fields)?,
                left,
                next: self.next.id(fields)?,
            });
        }
        if id == self.wakeup {
            return Some(Kind::Wakeup { thread: self.woken.id(fields)? });
        }
        if id == self.wakeup_new {
            return Some(Kind::Wakeup { thread: self.new.id(fields)? });
        }
        if id == self.fork {
            let (parent, child) = (self.parent.id(fields)?, self.child.id(fields)?);
            return Some(Kind::Fork { parent, child });
        }
        (Some(id) == self.moved).then_some(Kind::Moved)
    }
}

/// A detached mount of tracefs: invisible to other processes, gone with the descriptor.
fn mounted() -> Option<OwnedFd> {
    let context = fsopen("tracefs", FsOpenFlags::FSOPEN_CLOEXEC).ok()?;
    fsconfig_create(context.as_fd()).ok()?;
    let attributes = MountAttrFlags::MOUNT_ATTR_RDONLY;
    fsmount(context.as_fd(), FsMountFlags::FSMOUNT_CLOEXEC, attributes).ok()
}

struct Format {
    path: PathBuf,
    id: u16,
    text: String,
}

impl Format {
    fn read(path: PathBuf) -> Result<Format> {
        let text = fs::read_to_string(&path).map_err(|error| {
            let help = "run `mount -t tracefs tracefs /sys/kernel/tracing` as root, or record as \
                        root, or with --how sample";
            HostError::system(format!("read {}", path.display()), error, help)
        })?;
        let id = text.lines().find_map(|line| line.strip_prefix("ID:")?.trim().parse().ok());
        let id = id.ok_or_else(|| unknown(&path, "ID"))?;
        Ok(Format { path, id, text })
    }

    /// Finds a field in a line such as
    /// `field:pid_t prev_pid; offset:24; size:4; signed:1;`.
    fn field(&self, name: &str) -> Result<Field> {
        let field = self.text.lines().find_map(|line| {
            let mut parts = line.trim().strip_prefix("field:")?.split(';').map(str::trim);
            if parts.next()?.rsplit(' ').next() != Some(name) {
                return None;
            }
            let mut number = |key: &str| parts.next()?.strip_prefix(key)?.parse().ok();
            Some(Field { offset: number("offset:")?, size: number("size:")? })
        });
        field.filter(|f| matches!(f.size, 4 | 8)).ok_or_else(|| unknown(&self.path, name))
    }
}

fn unknown(path: &Path, what: &str) -> HostError {
    HostError::System {
        doing: format!("understand {}", path.display()),
        reason: format!("it has no `{what}` of a known form"),
        help: "record with --how sample, and report this kernel's version".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_where_the_format_says() {
        let root = tempfile::tempdir().unwrap();
        let write = |name: &str, id: u16, fields: &[(&str, usize, usize)]| {
            let dir = root.path().join("events").join(name);
            fs::create_dir_all(&dir).unwrap();
            let mut text = format!("name: x\nID: {id}\nformat:\n");
            for (field, offset, size) in fields {
                text += &format!("\tfield:{field};\toffset:{offset};\tsize:{size};\tsigned:1;\n");
            }
            fs::write(dir.join("format"), text).unwrap();
        };
        let switch =
            [("pid_t prev_pid", 8, 4), ("long prev_state", 16, 8), ("pid_t next_pid", 12, 4)];
        write("sched/sched_switch", 7, &switch);
        write("sched/sched_wakeup", 8, &[("char comm[16]", 8, 16), ("pid_t pid", 24, 4)]);
        write("sched/sched_wakeup_new", 9, &[("pid_t pid", 8, 4)]);
        let fork = [("pid_t parent_pid", 8, 4), ("pid_t child_pid", 12, 4)];
        write("sched/sched_process_fork", 10, &fork);
        let points = Tracepoints::read(root.path()).unwrap();
        assert_eq!(points.ids(), [7, 8, 9, 10]);
        let mut fields = vec![0; 24];
        fields[0] = 7;
        fields[8] = 3;
        fields[12] = 4;
        let left = |state: [u8; 2]| {
            let mut fields = fields.clone();
            fields[16..18].copy_from_slice(&state);
            match points.decode(&fields) {
                Some(Kind::Switch { prev: 3, left, next: 4 }) => left,
                other => panic!("{other:?}"),
            }
        };
        assert_eq!(left([0, 0]), Left::Runnable);
        assert_eq!(left([0, 1]), Left::Runnable);
        assert_eq!(left([1, 0]), Left::Blocked);
        assert_eq!(left([0x20, 0]), Left::Dead);
        assert_eq!(points.decode(&fields[..20]), None);
        fields[0] = 10;
        assert_eq!(points.decode(&fields), Some(Kind::Fork { parent: 3, child: 4 }));
        fields[0] = 11;
        assert_eq!(points.decode(&fields), None);
        write("sched/sched_switch", 7, &switch[..2]);
        let error = Tracepoints::read(root.path()).unwrap_err();
        assert!(error.to_string().contains("next_pid"), "{error}");
    }
}
