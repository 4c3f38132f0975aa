//! Numbers of CPUs and tasks: dense from 0, and not to be mixed up.

use std::fmt;

/// A number that indexes an array of its own kind.
pub trait Id: Copy {
    /// Its place in an array.
    fn index(self) -> usize;
    /// The number that stands at this place of an array.
    fn at(index: usize) -> Self;
}

macro_rules! id {
    ($(#[$about:meta])* $name:ident) => {
        $(#[$about])*
        #[repr(transparent)]
        #[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub struct $name(pub u32);

        impl $name {
            /// Stands for none (`POLICY_NONE`).
            pub const NONE: $name = $name(u32::MAX);

            /// Its place in an array. [`Self::NONE`] has none.
            #[inline]
            pub fn index(self) -> usize {
                self.0 as usize
            }

            /// The number that stands at this place of an array.
            #[inline]
            pub fn at(index: usize) -> $name {
                $name(index as u32)
            }

            /// [`Self::NONE`] as `None`.
            #[inline]
            pub fn some(self) -> Option<$name> {
                (self != $name::NONE).then_some(self)
            }
        }

        impl Id for $name {
            #[inline]
            fn index(self) -> usize {
                $name::index(self)
            }

            #[inline]
            fn at(index: usize) -> $name {
                $name::at(index)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter) -> fmt::Result {
                self.0.fmt(f)
            }
        }
    };
}

id! {
    /// A CPU (hardware thread).
    CpuId
}
id! {
    /// A task.
    TaskId
}

/// As lists of many CPUs hold them.
impl From<u16> for CpuId {
    #[inline]
    fn from(cpu: u16) -> CpuId {
        CpuId(cpu.into())
    }
}
