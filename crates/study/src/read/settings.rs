//! Settings of task groups as text: `quota=100ms`. A study file, an option of the
//! command line and a variant give the same keys, so one place reads them.

use std::iter::successors;

use reveille_measure::Ns;
use reveille_place::Mistake;
use reveille_policy::{BandwidthError, BandwidthLimits, Groups, TaskGroup, settings};
use reveille_workload::Program;

use crate::model::error::{Result, StudyError};
use crate::read::check;

/// What a group can be given, by key.
pub(crate) const KEYS: [&str; 4] = ["quota", "period", "burst", "phase"];

/// Name of a group that is given none.
pub(crate) const DEFAULT_NAME: &str = "group";

/// Sets one of [`KEYS`].
pub(crate) fn set(group: &mut TaskGroup, key: &str, value: &str) -> Result<(), Mistake> {
    match key {
        "phase" => group.phase_ns = Some(check::time(value)?),
        _ if BandwidthLimits::KEYS.contains(&key) => group.limits.set(key, value)?,
        _ => return Err(Mistake::unknown("setting of a group", key, &KEYS)),
    }
    Ok(())
}

/// Can a kernel be told so?
pub(crate) fn possible(group: &TaskGroup) -> Result<(), Mistake> {
    group.limits.check().map_err(BandwidthError::mistake)
}

/// What an edit sets: the group's position, or none for all of them, and the key.
type Place<'a> = (Option<usize>, &'a str);

/// Makes the edit `key=value` or `name.key=value`, which a variant consists of.
fn edit<'a>(groups: &mut Groups, text: &'a str) -> Result<Place<'a>, Mistake> {
    let (place, value) = text.split_once('=').unwrap_or((text, ""));
    some_group(groups, text)?;
    if place == "slice" {
        groups.slice_ns = slice(groups, value)?;
        return Ok((None, place));
    }
    let (name, key) = match place.rsplit_once('.') {
        Some((name, key)) => (Some(name), key),
        None => (None, place),
    };
    let names: Vec<&str> = groups.groups.iter().map(|g| g.name.as_str()).collect();
    let index = match (name, names.len()) {
        (None, 1) => 0,
        (None, _) => {
            let problem = format!("`{text}` could mean any of {}", names.join(", "));
            return Err(Mistake::new(problem, format!("write `{}.{text}`", names[0])));
        }
        (Some(name), _) => Mistake::position("task group", name, &names)?,
    };
    set(&mut groups.groups[index], key, value)?;
    Ok((Some(index), key))
}

/// Refuses a setting of task groups where there are none.
fn some_group(groups: &Groups, setting: &str) -> Result<(), Mistake> {
    if !groups.groups.is_empty() {
        return Ok(());
    }
    let help = "add a task group: `--group quota=100ms`, or `group` in a study's case";
    Err(Mistake::new(format!("`{setting}` sets a task group, and there is none"), help))
}

/// The groups with all edits made; each must be possible, change something, and be the only one of
/// its setting.
pub(crate) fn edited(groups: &Groups, edits: &[&str]) -> Result<Groups, Mistake> {
    let mut edited = groups.clone();
    let mut made: Vec<(Place, &str)> = Vec::new();
    for text in edits {
        let before = edited.clone();
        let place = edit(&mut edited, text)?;
        if let Some((_, earlier)) = made.iter().find(|(known, _)| *known == place) {
            let problem = format!("`{text}` sets again what `{earlier}` sets");
            return Err(Mistake::new(problem, "remove one of them"));
        }
        made.push((place, text));
        if edited == before {
            let problem = format!("`{text}` changes nothing: it already is so");
            return Err(Mistake::new(problem, "leave it out"));
        }
    }
    edited.groups.iter().try_for_each(possible)?;
    Ok(edited)
}

/// What a CPU draws from its group's quota at a time.
pub(crate) fn slice(groups: &Groups, text: &str) -> Result<Ns, Mistake> {
    some_group(groups, &format!("slice={text}"))?;
    match check::time(text)? {
        0 => Err(Mistake::new("a slice of nothing lets nothing run", "use 5ms, as kernels do")),
        ns => Ok(ns),
    }
}

pub(crate) fn role(program: &Program, name: &str) -> Result<u16, Mistake> {
    let names: Vec<&str> = program.roles.iter().map(|r| r.name.as_str()).collect();
    Mistake::position("kind of task", name, &names).map(|i| i as u16)
}

/// The position of an earlier group of this name.
pub(crate) fn parent(earlier: &[TaskGroup], name: &str) -> Result<usize, Mistake> {
    let names: Vec<&str> = earlier.iter().map(|g| g.name.as_str()).collect();
    Mistake::position("earlier task group", name, &names)
}

/// Refuses a group that would take tasks from an earlier one that it does not lie in. Without roles
/// it takes all tasks.
pub(crate) fn apart(earlier: &[TaskGroup], group: &TaskGroup) -> Result<(), Mistake> {
    let around = successors(group.parent, |&i| earlier[i].parent).collect::<Vec<_>>();
    let takes = |other: &TaskGroup| {
        group.roles.is_empty() || group.roles.iter().any(|role| other.roles.contains(role))
    };
    match (0..earlier.len()).find(|i| !around.contains(i) && takes(&earlier[*i])) {
        Some(i) => {
            let problem =
                format!("tasks of `{}` are in the group `{}` already", group.name, earlier[i].name);
            let help = "give each group `tasks` of its own, or one the other as its `parent`";
            Err(Mistake::new(problem, help))
        }
        None => Ok(()),
    }
}

/// A group may have any name that an edit can hold, once.
pub(crate) fn name(earlier: &[TaskGroup], name: &str) -> Result<(), Mistake> {
    let plain = |c: char| c.is_alphanumeric() || c == '-' || c == '_' || c == '/';
    if name.is_empty() || !name.chars().all(plain) {
        let text = format!("`{name}` is no name of a group");
        return Err(Mistake::new(text, "use letters, digits, `-`, `_` and `/`"));
    }
    if earlier.iter().any(|g| g.name == name) {
        let text = format!("two groups are called `{name}`");
        return Err(Mistake::new(text, "give one of them another name"));
    }
    Ok(())
}

/// A group as the command line gives it: `quota=100ms,period=100ms,tasks=worker+message`.
pub(crate) fn parse(
    earlier: &[TaskGroup],
    program: &Program,
    text: &str,
) -> Result<TaskGroup, Mistake> {
    let group = parse_keys(text, |group, key, value| match key {
        "name" => {
            group.name = value.to_owned();
            Ok(())
        }
        "parent" => {
            group.parent = Some(parent(earlier, value)?);
            Ok(())
        }
        "tasks" => {
            let roles = value.split('+').map(|name| role(program, name));
            group.roles = roles.collect::<Result<_, _>>()?;
            Ok(())
        }
        _ if KEYS.contains(&key) => set(group, key, value),
        _ => {
            let known = ["name", "parent", "tasks", "quota", "period", "burst", "phase"];
            Err(Mistake::unknown("setting of a group", key, &known))
        }
    })?;
    name(earlier, &group.name)?;
    apart(earlier, &group)?;
    possible(&group)?;
    Ok(group)
}

/// A group with each `key=value` of `text` set by `set`, every key once.
fn parse_keys(
    text: &str,
    set: impl Fn(&mut TaskGroup, &str, &str) -> Result<(), Mistake>,
) -> Result<TaskGroup, Mistake> {
    let mut group = TaskGroup::new(DEFAULT_NAME, BandwidthLimits::default());
    for (key, value) in settings(text)? {
        set(&mut group, key, value)?;
    }
    Ok(group)
}

/// A group around everything that runs, as `reveille bench --cgroup` gives it:
/// `quota=100ms,period=100ms,burst=0ms`.
///
/// # Errors
/// [`InputError::Option`](reveille_place::InputError::Option) naming `option`, what is wrong with its text and the fix.
pub fn whole_group(option: &'static str, text: &str) -> Result<Groups> {
    let wrong = |problem| StudyError::option(option, problem);
    let group = parse_keys(text, |group, key, value| group.limits.set(key, value));
    let group = group.map_err(wrong)?;
    possible(&group).map_err(wrong)?;
    if group.limits.quota_ns.is_none() {
        let problem = format!("`{text}` limits nothing");
        return Err(wrong(Mistake::new(problem, "give a quota, such as `quota=100ms`")));
    }
    Ok(group.into())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn groups(names: &[&str]) -> Groups {
        let mut groups = Groups::default();
        groups.groups.extend(names.iter().map(|n| TaskGroup::new(n, BandwidthLimits::default())));
        groups
    }

    #[test]
    fn edits_reach_the_group_that_they_name() {
        let two = groups(&["app", "rest"]);
        let made = edited(&two, &["rest.quota=50ms", "rest.burst=50ms", "slice=1ms"]).unwrap();
        assert_eq!(made.groups[1].limits.quota_ns, Some(50_000_000));
        assert_eq!(made.groups[1].limits.burst_ns, 50_000_000);
        assert_eq!(made.groups[0], two.groups[0]);
        assert_eq!(made.slice_ns, 1_000_000);
        let one = edited(&groups(&["app"]), &["quota=20ms"]).unwrap();
        assert_eq!(one.groups[0].limits.quota_ns, Some(20_000_000));
    }

    #[test]
    fn a_task_is_in_one_group_and_those_around_it() {
        let group = |name: &str, parent: Option<usize>, roles: &[u16]| TaskGroup {
            parent,
            roles: roles.to_vec(),
            ..TaskGroup::new(name, BandwidthLimits::default())
        };
        let all = [group("all", None, &[]), group("app", Some(0), &[1])];
        assert!(apart(&all, &group("inner", Some(1), &[1])).is_ok());
        assert!(apart(&all, &group("other", Some(0), &[0, 2])).is_ok());
        let refused = |after: &[TaskGroup], parent, roles: &[u16], words: &str| {
            let mistake = apart(after, &group("other", parent, roles)).unwrap_err();
            assert_eq!(
                mistake.problem,
                format!("tasks of `other` are in the group {words} already")
            );
        };
        refused(&all, Some(0), &[0, 1], "`app`");
        refused(&all, Some(0), &[], "`app`");
        refused(&all[..1], None, &[], "`all`");
    }

    #[test]
    fn edits_that_no_kernel_takes_are_refused() {
        let refused = |names: &[&str], edits: &[&str], words: &str| {
            let mistake = edited(&groups(names), edits).unwrap_err();
            assert!(mistake.problem.contains(words), "{mistake:?}");
            assert!(!mistake.help.is_empty());
        };
        refused(&[], &["burst=1ms"], "there is none");
        refused(&["a", "b"], &["burst=1ms"], "any of a, b");
        refused(&["a"], &["b.burst=1ms"], "no task group is called `b`");
        refused(&["a"], &["bust=1ms"], "no setting");
        refused(&["a"], &["period=100ms"], "changes nothing");
        refused(&["a"], &["period=2s"], "period");
        refused(&["a"], &["quota=1us"], "less than 1 ms");
        refused(&["a"], &["quota=10ms", "burst=11ms"], "more than the quota");
        refused(&["a"], &["slice=0ms"], "lets nothing run");
        refused(&["a"], &["quota=50ms", "quota=20ms"], "`quota=20ms` sets again what `quota=50ms`");
        refused(&["a"], &["a.burst=0ms", "burst=0ms"], "changes nothing");
        refused(&["a"], &["quota=50ms", "a.quota=50ms"], "sets again");
        refused(&["a"], &["slice=1ms", "quota=9ms", "slice=2ms"], "sets again");
        assert!(edited(&groups(&["a", "b"]), &["a.quota=50ms", "b.quota=20ms"]).is_ok());
    }
}
