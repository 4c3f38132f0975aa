//! Policies of the user's own: from template to table, and what a file can do wrong.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};
use std::thread::sleep;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::{failure, is_progress, processes_with, reveille, send};

/// A directory for the user's files, and one for temporary files.
pub(crate) struct Desk {
    pub(crate) own: tempfile::TempDir,
    temporary: tempfile::TempDir,
}

impl Desk {
    pub(crate) fn new() -> Desk {
        Desk { own: tempfile::tempdir().unwrap(), temporary: tempfile::tempdir().unwrap() }
    }

    pub(crate) fn path(&self, name: &str) -> PathBuf {
        self.own.path().join(name)
    }

    /// A policy file whose function sets `pick` and returns it.
    pub(crate) fn policy(&self, name: &str, body: &str) {
        self.function(name, &format!("struct policy_pick pick = {{ 0 }};\n{body}\nreturn pick;"));
    }

    /// A policy file whose function has this body.
    pub(crate) fn function(&self, name: &str, body: &str) {
        let text = format!(
            "#include <reveille.h>\nREVEILLE_POLICY(1);\n\
             struct policy_pick reveille_select(struct world *w, const struct policy_tunables *t,\n\
             struct policy_task *p, struct policy_task *waker, u32 this_cpu, u32 flags, u64 now_j)\n\
             {{\n{body}\n}}\n"
        );
        fs::write(self.path(name), text).unwrap();
    }

    pub(crate) fn command(&self, args: &[&str]) -> Command {
        let mut command = reveille(args);
        command.current_dir(self.own.path()).env("TMPDIR", self.temporary.path());
        command
    }

    pub(crate) fn output(&self, args: &[&str]) -> Output {
        self.command(args).output().unwrap()
    }

    /// Standard output, if it succeeds and says nothing else.
    fn stdout(&self, args: &[&str]) -> String {
        let output = self.output(args);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success() && is_progress(&errors), "{args:?}: {errors}");
        self.nothing_is_left();
        String::from_utf8(output.stdout).unwrap()
    }

    /// What it says on standard error, given that it fails so.
    pub(crate) fn refused(&self, args: &[&str], code: i32) -> String {
        let errors = failure(&mut self.command(args), code);
        self.nothing_is_left();
        errors
    }

    /// No temporary file, and no process that would make one.
    pub(crate) fn nothing_is_left(&self) {
        let left: Vec<_> = fs::read_dir(self.temporary.path()).unwrap().collect();
        assert!(left.is_empty(), "{left:?}");
        assert_eq!(self.processes(), [0; 0]);
    }

    /// Processes with the directory for temporary files in their environment.
    fn processes(&self) -> Vec<u32> {
        processes_with(&format!("TMPDIR={}", self.temporary.path().display()))
    }
}

fn compare<'a>(base: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    lasting("2ms", base, more)
}

fn lasting<'a>(duration: &'a str, base: &'a str, more: &[&'a str]) -> Vec<&'a str> {
    let small = ["compare", "--machine", "zen4-7950x", "--workload", "context_switch1"];
    let times = ["--repeats", "2", "--warmup", "2ms", "--duration", duration, "--base", base];
    [&small[..], &times, more].concat()
}

fn example(name: &str) -> PathBuf {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/examples/policies");
    root.join(name).canonicalize().unwrap()
}

#[test]
fn from_the_template_to_a_table() {
    let desk = Desk::new();
    let next = desk.stdout(&["policy", "new", "idea.c"]);
    assert_eq!(next, "wrote idea.c; next: reveille policy check idea.c\n");
    for command in ["new", "check"] {
        let comma = desk.refused(&["policy", command, "x,y.c"], 2);
        assert!(comma.contains("`x,y.c` has a comma"), "{comma}");
    }
    let again = desk.refused(&["policy", "new", "idea.c"], 2);
    assert!(again.contains("it exists") && again.contains("--force"), "{again}");
    desk.stdout(&["policy", "new", "idea.c", "--force"]);
    let checked = desk.stdout(&["policy", "check", "idea.c"]);
    assert_eq!(checked, "idea.c: ok, version 1 of the interface\n");
    let json: Value =
        serde_json::from_str(&desk.stdout(&["policy", "check", "idea.c", "--json"])).unwrap();
    assert_eq!((&json["ok"], &json["interface"]), (&true.into(), &1.into()));
    assert_eq!(json["messages"], Value::Array(Vec::new()));
    let table = desk.stdout(&compare("v6.4", &["--load", "16", "--policy", "idea.c,-TTWU_QUEUE"]));
    assert!(table.contains("idea.c -TTWU_QUEUE against v6.4"), "{table}");
    // Two of 32 CPUs are busy: the last CPU is idle, and both sides find it before any search.
    let quiet = desk.stdout(&compare("v6.4", &["--load", "1", "--json", "--policy", "idea.c"]));
    let row: Value = serde_json::from_str(&quiet).unwrap();
    for side in ["baseline", "candidate"] {
        let explained = &row["rows"][0]["explain"][side];
        assert_eq!(explained["fast_path_pct"], 100.0, "{side}");
        assert_eq!(explained["idle_searches_per_s"], 0.0, "{side}");
    }
}

#[test]
fn sis_short_as_a_file_decides_as_the_built_in_rule() {
    let desk = Desk::new();
    let file = example("sis_short.c");
    let file = file.to_str().unwrap();
    let rows = |more: &[&str]| {
        let pairs = ["compare", "--machine", "spr-1s56c", "--workload", "context_switch1"];
        let times = ["--repeats", "2", "--warmup", "20ms", "--duration", "2ms"];
        let rest = ["--load", "56,120", "--base", "v6.2", "--json"];
        let args = [&pairs[..], &times, &rest, more].concat();
        let result: Value = serde_json::from_str(&desk.stdout(&args)).unwrap();
        result["rows"].as_array().unwrap().clone()
    };
    let built_in = rows(&["--with", "+SIS_SHORT"]);
    let busy = &built_in[1];
    assert_ne!(busy["candidate"]["mean"], busy["baseline"]["mean"], "the rule does something");
    let one = rows(&["--policy", file, "--jobs", "1"]);
    let named = serde_json::to_string(&one).unwrap().replace(file, "+SIS_SHORT");
    assert_eq!(named, serde_json::to_string(&built_in).unwrap());
    assert_eq!(rows(&["--policy", file, "--jobs", "2"]), one);
}

#[test]
fn files_of_one_comparison_are_kept_apart() {
    let desk = Desk::new();
    let [first, two] = ["first_fit.c", "power_of_two.c"].map(example);
    let [first, two] = [first.to_str().unwrap(), two.to_str().unwrap()];
    let args = compare("v6.2", &["--load", "16", "--json", "--policy", first, "--policy", two]);
    let result: Value = serde_json::from_str(&desk.stdout(&args)).unwrap();
    let rows = result["rows"].as_array().unwrap();
    assert_eq!(rows.len(), 2);
    assert_ne!(rows[0]["candidate"], rows[1]["candidate"]);
    let twice = compare("v6.2", &["--load", "16", "--policy", first, "--policy", first]);
    assert!(desk.refused(&twice, 2).contains("given twice"));
}

/// Where nothing idles, a policy that looks at CPUs and takes a busy one has found nothing.
#[test]
fn a_search_of_ones_own_that_finds_nothing_is_no_success() {
    let desk = Desk::new();
    let look =
        "for (u32 i = 0; i < 4; i++) reveille_look(w, this_cpu, &pick);\npick.cpu = this_cpu;";
    desk.policy("here.c", look);
    let full = compare("v6.2", &["--load", "64", "--json", "--policy", "here.c"]);
    let result: Value = serde_json::from_str(&desk.stdout(&full)).unwrap();
    let explained = &result["rows"][0]["explain"]["candidate"];
    let of = |name: &str| explained[name].as_f64().unwrap();
    assert!(of("search_success_pct") < 5.0 && of("fast_path_pct") < 5.0, "{explained}");
    assert!(of("search_efficiency_pct") < 30.0, "{explained}");
}

#[test]
fn what_breaks_a_run_breaks_nothing_else() {
    let desk = Desk::new();
    let null = "struct policy_task *none = (void *)(now_j & 1 ? 0 : 8); pick.cpu = none->id;";
    let endless = "for (;;) { volatile char *more = __builtin_alloca(4096); more[0] = 1; }";
    let says: [(&str, &str, &str); 10] = [
        ("deep.c", endless, "SIGSEGV"),
        ("null.c", null, "SIGSEGV"),
        ("zero.c", "pick.cpu = this_cpu / (u32)(now_j >> 40);", "SIGFPE"),
        ("known.c", "pick.cpu = 1 / (this_cpu - this_cpu);", "knows to be zero (SIGILL)"),
        ("trap.c", "__builtin_trap();", "is not there"),
        ("beyond.c", "pick.cpu = world_llc(w, 4096);", "asked for a CPU"),
        ("loop.c", "for (;;) __asm__ volatile(\"\");", "takes longer than 2 s"),
        ("cpu.c", "pick.cpu = 32;", "chose CPU 32 for task"),
        ("target.c", "pick.target = POLICY_NONE;", "set pick.target"),
        ("wild.c", "for (u64 i = 0; i < 4096; i++) ((u64 *)w)[i] = i;", "wild.c: "),
    ];
    for (name, body, problem) in says {
        desk.policy(name, body);
        let began = Instant::now();
        let said = desk.refused(&compare("v6.4", &["--load", "4", "--policy", name]), 1);
        assert!(said.contains(name) && said.contains(problem), "{name}: {said}");
        assert!(began.elapsed() < Duration::from_secs(30), "{name}");
    }
    let mut told = desk.command(&compare("v6.4", &["--load", "4", "--policy", "cpu.c"]));
    let told = told.env("REVEILLE_ERRORS", "json").output().unwrap().stderr;
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(told["kind"], "policy");
    assert_eq!(
        told["fix"],
        "return pick.target if you find none; `cpus=` makes a machine of its CPUs only and \
         numbers them anew"
    );
    // The system says nothing of its own beside the line.
    let mut told = desk.command(&compare("v6.4", &["--load", "4", "--policy", "deep.c"]));
    let told = told.env("REVEILLE_ERRORS", "json").output().unwrap().stderr;
    let told: Value = serde_json::from_slice(&told).unwrap();
    assert_eq!(told["file"], "deep.c");
}

#[test]
fn what_does_not_compile_is_shown_at_its_place() {
    let desk = Desk::new();
    desk.policy("slip.c", "\tpick.cpu = world_lcc(w, this_cpu);");
    let said = desk.refused(&["policy", "check", "slip.c"], 2);
    assert!(said.contains("slip.c:7:13: error: implicit declaration"), "{said}");
    let json = desk.output(&["policy", "check", "slip.c", "--json"]);
    let json: Value = serde_json::from_slice(&json.stdout).unwrap();
    assert_eq!((&json["ok"], &json["messages"][0]["line"]), (&false.into(), &7.into()));
    let args = compare("v6.4", &["--load", "4", "--policy", "slip.c"]);
    let said = desk.refused(&args, 2);
    assert!(said.contains("slip.c:7: implicit declaration") && said.contains("pick.cpu = "));
    assert!(said.contains("help: correct the file"), "{said}");
    desk.policy("libc.c", "pick.cpu = (u32)rand() % 4;");
    let libc = fs::read_to_string(desk.path("libc.c")).unwrap();
    fs::write(desk.path("libc.c"), libc.replace("(1);\n", "(1);\n#include <stdlib.h>\n")).unwrap();
    let said = desk.refused(&["policy", "check", "libc.c"], 2);
    assert!(said.starts_with("libc.c:3:1: error: includes a header of the C library"), "{said}");
    assert_eq!(said.lines().count(), 2, "{said}");
    desk.policy("a,b.c", "pick.cpu = this_cpu;");
    let said = desk.refused(&compare("v6.4", &["--load", "4", "--policy", "a,b.c"]), 2);
    assert!(said.contains("the comma in `a,b.c`") && said.contains("rename the file"), "{said}");
    let said = desk.refused(&compare("v6.4", &["--load", "4", "--policy", "p/c,d.c"]), 2);
    assert!(
        said.contains("the file is `p/c`") && said.contains("the comma in `p/c,d.c`"),
        "{said}"
    );
    let said = desk.refused(&compare("v6.4", &["--load", "4", "--policy", "p/c,-TTWU_QUEUE"]), 2);
    assert!(said.contains("p/c: No such file"), "{said}");
    desk.policy("unused.c", "int unused = 1;\npick.cpu = this_cpu;");
    let warned = desk.output(&["policy", "check", "unused.c"]);
    assert!(warned.status.success());
    assert!(String::from_utf8_lossy(&warned.stderr).contains("unused.c:7:5: warning: unused"));
    // A comparison shows the warnings too, once for each file.
    let twice = ["--load", "4", "--policy", "unused.c", "--policy", "unused.c,-TTWU_QUEUE"];
    let warned = desk.output(&compare("v6.4", &twice));
    let said = String::from_utf8_lossy(&warned.stderr);
    assert!(warned.status.success(), "{said}");
    assert_eq!(said.matches("unused.c:7:5: warning: unused").count(), 1, "{said}");
}

#[test]
fn what_the_compiler_lets_pass_is_refused_too() {
    let desk = Desk::new();
    desk.policy("state.c", "static u32 next;\npick.cpu = next++ % 4;");
    desk.policy("calls.c", "int rand(void);\npick.cpu = (u32)rand() % 4;");
    let says = |name: &str, problem: &str| {
        let said = desk.refused(&["policy", "check", name], 2);
        assert!(said.contains(problem), "{name}: {said}");
        desk.refused(&compare("v6.4", &["--load", "4", "--policy", name]), 2);
    };
    says("state.c", "state.c:7:12: error: `next` outlives a decision");
    says("calls.c", "calls.c:7:5: error: `rand` is not defined");
    let text = fs::read_to_string(desk.path("state.c")).unwrap();
    fs::write(desk.path("later.c"), text.replace("POLICY(1)", "POLICY(2)")).unwrap();
    says("later.c", "is written for version 2 of the interface; this reveille has version 1");
    fs::write(desk.path("old.c"), text.replace("REVEILLE_POLICY(1);", "")).unwrap();
    says("old.c", "does not say which version");
    fs::write(desk.path("none.c"), "int x;\n").unwrap();
    says("none.c", "defines no reveille_select()");
    let gone = desk.refused(&["policy", "check", "gone.c"], 2);
    assert!(gone.contains("gone.c: ") && gone.contains("policy new"), "{gone}");
    let on_host = compare("v6.4", &["--load", "4", "--policy", "old.c", "--on", "host"]);
    assert!(desk.refused(&on_host, 2).contains("leave out --on"));
}

#[test]
fn a_missing_compiler_is_named() {
    let desk = Desk::new();
    desk.policy("fine.c", "pick.cpu = this_cpu;");
    let said = failure(desk.command(&["policy", "check", "fine.c"]).env("CC", "/nonexistent"), 2);
    assert!(said.contains("`/nonexistent` cannot be run") && said.contains("set CC"), "{said}");
    desk.nothing_is_left();
}

#[test]
fn signals_end_the_run_and_leave_nothing() {
    let desk = Desk::new();
    desk.policy("fine.c", "pick.cpu = this_cpu;");
    // A wrapper that keeps the compiler busy.
    let slow = desk.path("slow.sh");
    fs::write(&slow, "sleep 30; exec cc \"$@\"\n").unwrap();
    let slow = format!("sh {}", slow.display());
    let endless = lasting("70000s", "v6.4", &["--load", "4", "--policy", "fine.c"]);
    for (compiler, signal, code) in [
        ("cc", "INT", Some(130)),
        ("cc", "KILL", None),
        (&slow, "TERM", Some(130)),
        (&slow, "KILL", None),
    ] {
        let mut child = desk.command(&endless);
        let child = child.env("CC", compiler).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = child.spawn().unwrap();
        sleep(Duration::from_millis(1500));
        assert!(desk.processes().len() > 1, "{compiler}: the child runs");
        send(&child, signal);
        let output = child.wait_with_output().unwrap();
        assert_eq!(output.status.code(), code, "{compiler} {signal}");
        let began = Instant::now();
        while !desk.processes().is_empty() && began.elapsed() < Duration::from_secs(2) {
            sleep(Duration::from_millis(20));
        }
        desk.nothing_is_left();
    }
}
