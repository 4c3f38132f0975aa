//! What a user meets first: help, completions, man pages, the old names of commands, and
//! errors that a terminal can show.

use std::fs;
use std::process::Command;

use super::{failure, json, reveille, small, stdout};

#[test]
fn help_groups_the_commands_by_what_one_wants() {
    let text = stdout(&["--help"]);
    assert!(text.starts_with("Try scheduler wakeup policies on hardware you don't have"), "{text}");
    let at = |word: &str| text.find(word).unwrap_or_else(|| panic!("no {word} in {text}"));
    let order = ["\nLab", "  study ", "\nLimits", "  record ", "\nHost", "  bench ", "\nLists"];
    assert!(order.windows(2).all(|pair| at(pair[0]) < at(pair[1])), "{text}");
    assert!(text.lines().all(|line| line.chars().count() <= 80), "{text}");
    assert!(!text.contains("usage ") && !text.contains("generate"), "{text}");
    for code in ["3 `plan --verify`", "130 interrupted"] {
        assert!(text.contains(code), "{code}: {text}");
    }
    for (list, value, help) in [
        ("machines", "[NAME|FILE]", "a name, a file, or `host`"),
        ("policies", "[NAME]", "Show this baseline or feature in full"),
    ] {
        let text = stdout(&[list, "--help"]);
        assert!(text.contains(value) && text.contains(help), "{text}");
    }
    for command in ["study", "record", "plan", "bench", "machines"] {
        let text = stdout(&[command, "--help"]);
        assert!(text.starts_with(&format!("Example: reveille {command} ")), "{text}");
    }
}

#[test]
fn recordings_have_commands_of_their_own_and_keep_the_old_names() {
    let directory = tempfile::tempdir().unwrap();
    let path = |name: &str| directory.path().join(name).to_str().unwrap().to_owned();
    let (table, new, old) = (path("requests.csv"), path("new.parquet"), path("old.parquet"));
    fs::write(&table, "at_ms,cpu_us\n0,500\n10,700\n20,400\n").unwrap();
    stdout(&["import", &table, "-o", &new]);
    stdout(&["usage", "import", &table, "-o", &old]);
    assert_eq!(fs::read(&new).unwrap(), fs::read(&old).unwrap());
    assert_eq!(stdout(&["show", &new, "--json"]), stdout(&["usage", "show", &new, "--json"]));
    failure(&mut reveille(&["record"]), 2);
}

#[test]
fn man_pages_and_completions_know_every_command() {
    let directory = tempfile::tempdir().unwrap();
    let share = directory.path();
    stdout(&["generate", share.to_str().unwrap()]);
    let man = |name: &str| fs::read_to_string(share.join("man/man1").join(name)).unwrap();
    assert!(man("reveille-compare.1").contains("Example: reveille compare"));
    let help = stdout(&["--help"]);
    let scripts = ["bash-completion/completions/reveille", "zsh/site-functions/_reveille"];
    let scripts = scripts.map(|file| fs::read_to_string(share.join(file)).unwrap());
    let listed = help.lines().filter(|line| line.starts_with("  ") && !line.starts_with("  -"));
    for command in listed.filter_map(|line| line.split_whitespace().next()) {
        man(&format!("reveille-{command}.1"));
        assert!(scripts.iter().all(|script| script.contains(command)), "{command}");
    }
    assert!(scripts.iter().all(|script| !script.contains("generate")));
    assert!(!share.join("man/man1/reveille-usage.1").exists());
    assert!(share.join("fish/vendor_completions.d/reveille.fish").exists());
    let load = "source \"$1\"/bash-completion/completions/reveille && complete -p reveille";
    let bash = Command::new("bash").args(["-c", load, "bash"]).arg(share).output().unwrap();
    assert!(bash.status.success(), "{}", String::from_utf8_lossy(&bash.stderr));
}

#[test]
fn every_json_names_the_version_of_the_program() {
    let version = env!("CARGO_PKG_VERSION");
    let compared = small(&["--json"]);
    let lists: [&[&str]; 4] = [
        &["machines", "--json"],
        &["policies", "SIS_SHORT", "--json"],
        &["studies", "sis-short", "--json"],
        &compared,
    ];
    for args in lists {
        assert!(stdout(args).starts_with(&format!("{{\n  \"version\": \"{version}\"")), "{args:?}");
    }
    let result = json(&compared);
    assert_eq!((&result["seed"], &result["rows"][0]["repeats"]), (&1.into(), &3.into()));
}

#[test]
fn a_page_says_how_it_was_made_and_can_be_made_again() {
    let directory = tempfile::tempdir().unwrap();
    let page = |date: &str| {
        let args = small(&["--html", "page.html", "--no-explain"]);
        let made = reveille(&args)
            .current_dir(directory.path())
            .env("SOURCE_DATE_EPOCH", date)
            .output()
            .unwrap();
        (made, fs::read_to_string(directory.path().join("page.html")).unwrap_or_default())
    };
    let (refused, nothing) = page("yesterday");
    assert_eq!(refused.status.code(), Some(2));
    assert!(nothing.is_empty());
    let (_, first) = page("951782400");
    let version = env!("CARGO_PKG_VERSION");
    for text in [
        &format!("Made by reveille {version} on 2000-02-29 00:00:00 UTC"),
        "<code>reveille compare --machine zen4-7950x",
        "--html page.html --no-explain</code>",
        "<dt>Seed</dt><dd>1</dd>",
        "<dt>Repeats</dt><dd>3</dd>",
    ] {
        assert!(first.contains(text), "{text}");
    }
    assert_eq!(page("951782400").1, first);
}

/// The file system takes so little that a page cannot be written, but the pipe takes all.
#[test]
fn a_full_disk_does_not_lose_the_result() {
    let directory = tempfile::tempdir().unwrap();
    let limited = |args: &[&str]| {
        let script = "trap '' XFSZ; ulimit -f 1; exec \"$@\"";
        let mut bash = Command::new("bash");
        bash.args(["-c", script, "bash", env!("CARGO_BIN_EXE_reveille")]).args(args);
        bash.current_dir(directory.path()).output().unwrap()
    };
    for form in [None, Some("--json"), Some("--csv")] {
        let args: Vec<&str> = form.into_iter().collect();
        let whole = stdout(&small(&args));
        let args: Vec<&str> = args.into_iter().chain(["--html", "page.html"]).collect();
        let output = limited(&small(&args));
        assert_eq!(String::from_utf8_lossy(&output.stdout), whole);
        let errors = String::from_utf8_lossy(&output.stderr);
        assert_eq!(output.status.code(), Some(1), "{errors}");
        assert!(errors.contains("cannot write page.html"), "{errors}");
    }
    assert_eq!(fs::read_dir(directory.path()).unwrap().count(), 0);
    let mut full = reveille(&small(&["--json"]));
    let full = full.stdout(fs::File::create("/dev/full").unwrap()).output().unwrap();
    assert_eq!(full.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&full.stderr).contains("cannot write the result"));
}

#[test]
fn errors_neither_fill_nor_drive_a_terminal() {
    let directory = tempfile::tempdir().unwrap();
    let refused = |args: &[&str]| {
        let errors = failure(&mut reveille(args), 2);
        assert!(!errors.contains(['\x1b', '\r']), "{args:?}");
        errors
    };
    let file = |name: &str, text: String| {
        let path = directory.path().join(name);
        fs::write(&path, text).unwrap();
        path.to_str().unwrap().to_owned()
    };
    let filler = "<object type=\"PU\" os_index=\"0\"/>".repeat(100_000);
    let long = file("long.xml", format!("<topology>{filler}<broken{filler}</topology>"));
    let errors = refused(&["machines", &long]);
    assert!(errors.len() < 4000, "{} bytes", errors.len());
    let columns = errors.lines().map(|line| line.chars().count()).max().unwrap();
    assert!(columns < 400, "{columns} columns");
    let coloured = file("colour.toml", "name = \"a\"\r\nab\u{1b}[31mout = 1\r\n".to_owned());
    let errors = refused(&["study", &coloured]);
    assert!(errors.contains("colour.toml:2") && errors.contains("\\u{1b}[31m"), "{errors}");
    let name = format!("\u{1b}]0;title\u{7}{}", "x".repeat(10_000));
    let errors = refused(&["study", &name]);
    assert!(errors.contains("\\u{1b}]0;title\\u{7}xxx") && errors.len() < 2000, "{errors}");
    // The place of a mistake far to the right is still shown and counted.
    let key = format!("name = \"wide\"\nabout = \"{}\" wrong\n", "y".repeat(1000));
    let errors = refused(&["study", &file("wide.toml", key)]);
    assert!(errors.contains("wide.toml:2:1012") && errors.contains("wrong"), "{errors}");
}
