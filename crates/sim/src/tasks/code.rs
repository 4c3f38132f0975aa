//! The operations of all roles in one array, each with the one that follows it: a task
//! looks at its next operation several times per activation.

use reveille_workload::{FOR_EVER, Op, Program};

use crate::ids::{At, IdVec};

/// An operation, and the place of the next one.
#[derive(Clone, Copy, Debug)]
struct Instruction {
    op: Op,
    next: u32,
    /// What the next one counts, if it only counts, and the one after that; otherwise 0, and the
    /// next.
    counts: u32,
    after: u32,
}

/// Programs of all roles. Places are counted over all of them.
pub(crate) struct Code {
    instructions: IdVec<At, Instruction>,
    /// Place of the first operation of each role.
    begins: Vec<u32>,
}

impl Code {
    pub(crate) fn new(program: &Program) -> Code {
        let mut code = Code { instructions: IdVec::new(), begins: Vec::new() };
        for role in &program.roles {
            assert!(!role.ops.is_empty(), "role {} does nothing", code.begins.len());
            let begin = code.instructions.len() as u32;
            code.begins.push(begin);
            for (number, &op) in role.ops.iter().enumerate() {
                if let Op::Again { back, .. } = op {
                    assert!(usize::from(back) <= number, "a loop begins before its role");
                }
                // The last operation is followed by the first.
                let next = if number + 1 == role.ops.len() { 0 } else { number as u32 + 1 };
                let next = begin + next;
                code.instructions.push(Instruction { op, next, counts: 0, after: next });
            }
        }
        code.shorten();
        code
    }

    /// Jumps over what takes no decision: the end of an endless loop, and counting.
    fn shorten(&mut self) {
        for place in self.instructions.ids() {
            let mut next = self.next(place.0 as u32);
            while let Op::Again { back, times: FOR_EVER, .. } = *self.op(next) {
                next -= u32::from(back);
            }
            self.instructions[place].next = next;
            self.instructions[place].after = next;
        }
        for place in self.instructions.ids() {
            let next = self.next(place.0 as u32);
            if let Op::Count(n) = *self.op(next) {
                let after = self.next(next);
                let shortened = &mut self.instructions[place];
                (shortened.counts, shortened.after) = (n, after);
            }
        }
    }

    /// Does some role send or serve requests?
    pub(crate) fn has_requests(&self) -> bool {
        self.instructions.iter().any(|i| matches!(i.op, Op::Request { .. } | Op::Serve))
    }

    /// Where a task of this role begins.
    pub(crate) fn begin(&self, role: u16) -> u32 {
        self.begins[usize::from(role)]
    }

    #[inline]
    pub(crate) fn op(&self, place: u32) -> &Op {
        &self.instructions[At(place as usize)].op
    }

    #[inline]
    pub(crate) fn next(&self, place: u32) -> u32 {
        self.instructions[At(place as usize)].next
    }

    /// What follows the operation at once: how much is counted, and the place after that.
    #[inline]
    pub(crate) fn after(&self, place: u32) -> (u32, u32) {
        let Instruction { counts, after, .. } = self.instructions[At(place as usize)];
        (counts, after)
    }
}
