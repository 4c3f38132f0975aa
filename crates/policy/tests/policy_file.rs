//! Decisions of a policy file in a world: which are followed, and what a file may write.

use reveille_place::Mistake;
use reveille_policy::{
    CpuId, Draft, LlcShape, Pick, Policy, PolicyFile, Rule, Task, TaskId, Wakeup, World, WorldShape,
};

/// A policy file whose function has this body.
fn policy(body: &str) -> PolicyFile {
    let directory = tempfile::tempdir().unwrap();
    let file = directory.path().join("own.c");
    let text = format!(
        "#include <reveille.h>\nREVEILLE_POLICY(1);\n\
         struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,\n\
         struct policy_task *p, struct policy_task *waker, u32 this_cpu, u32 flags, u64 now_j)\n\
         {{\nstruct policy_pick pick = {{ 0 }};\n{body}\nreturn pick;\n}}\n"
    );
    std::fs::write(&file, text).unwrap();
    Draft::compile(&file, directory.path()).unwrap().load().unwrap()
}

/// Asks it in a world of four CPUs in two LLCs, of which the wakee may use the first three.
fn ask(body: &str) -> (Result<Pick, Mistake>, Task) {
    let llc = |cpus: [u32; 2]| LlcShape { cores: cpus.map(|cpu| vec![CpuId(cpu)]).to_vec() };
    let mut world = World::new(&WorldShape { llcs: vec![llc([0, 1]), llc([2, 3])] });
    let affinity = world.add_affinity(|cpu| cpu != CpuId(3));
    let id = TaskId::at(0);
    world.add_task(Task { affinity, ..Task::new(id, CpuId(1)) });
    world.set_available_idle(CpuId(0), false);
    let tunables = Policy::baseline("v6.4").unwrap().tunables(4, 250);
    let wakeup =
        Wakeup { wakee: id, waker: TaskId::NONE, this_cpu: CpuId(0), flags: 0, now_j: 1 << 20 };
    let run = policy(body).start();
    let pick = world.select_cpu_by(&run, &tunables, &wakeup);
    (pick, *world.task(id))
}

#[test]
fn a_decision_and_its_looks_are_followed() {
    let pick = ask("pick.cpu = reveille_look(w, 0, &pick) ? 0 : 2;\nreveille_look(w, 2, &pick);");
    let pick = pick.0.unwrap();
    assert_eq!((pick.cpu, pick.rule()), (CpuId(2), Rule::Own));
    assert_eq!((pick.searched, pick.far, pick.search()), (2, 1, true));
    let busy = ask("pick.cpu = 0; pick.far = 9;").0.unwrap();
    assert_eq!((busy.rule(), busy.far), (Rule::OwnBusy, 0));
    let kernel = ask("pick = policy_select_cpu(w, t, p, waker, this_cpu, flags, now_j);");
    assert_eq!(kernel.0.unwrap().rule(), Rule::TargetIdle);
}

#[test]
fn a_decision_that_cannot_be_followed_is_an_error() {
    let refused = |body: &str| {
        let Mistake { problem, help } = ask(body).0.unwrap_err();
        format!("{problem}; {help}")
    };
    assert_eq!(
        refused("pick.cpu = 4;"),
        "chose CPU 4 for task 0, and there are 4, numbered from 0; return pick.target if you find \
         none; `cpus=` makes a machine of its CPUs only and numbers them anew"
    );
    assert!(refused("pick.cpu = 3;").contains("CPU 3 for task 0, not allowed there"));
    assert!(refused("pick.target = 9;").contains("pick.target to 9"));
    assert!(refused("p->recent_used_cpu = 9;").contains("recent_used_cpu of task 0 to 9"));
}

#[test]
fn a_file_writes_history_and_nothing_else_of_a_task() {
    let (pick, task) = ask("p->wakee_flips = 7; p->prev_cpu = 9; p->affinity = 0; p->id = 5;");
    assert!(pick.is_ok());
    assert_eq!((task.wakee_flips, task.prev_cpu, task.id), (7, CpuId(1), TaskId::at(0)));
    assert_eq!(task.affinity, 1);
}
