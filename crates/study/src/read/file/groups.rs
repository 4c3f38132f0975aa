//! Task groups of a case.

use reveille_policy::{BandwidthLimits, Groups, TaskGroup};
use reveille_workload::Program;
use toml::Spanned;

use super::document::Document;
use crate::model::error::Result;
use crate::read::raw::{RawCase, RawGroup};
use crate::read::settings;

impl Document<'_> {
    /// `group` or `groups`, and `slice`.
    pub(super) fn groups(&self, raw: &RawCase, program: &Program) -> Result<Groups> {
        let mut groups = Groups::default();
        let several: &[Spanned<RawGroup>] = match (&raw.group, &raw.groups) {
            (Some(_), Some(several)) => return self.beside("groups", several, "group"),
            (Some(one), None) => std::slice::from_ref(one),
            (None, Some(several)) => several.get_ref(),
            (None, None) => &[],
        };
        for group in several {
            let group = self.group(group, &groups.groups, program)?;
            groups.groups.push(group);
        }
        if let Some(slice) = &raw.slice {
            groups.slice_ns = self.at("slice", slice, settings::slice(&groups, slice.get_ref()))?;
        }
        Ok(groups)
    }

    fn group(
        &self,
        raw: &Spanned<RawGroup>,
        earlier: &[TaskGroup],
        program: &Program,
    ) -> Result<TaskGroup> {
        let place = raw.span();
        let raw = raw.get_ref();
        let name = raw.name.as_ref().map_or(settings::DEFAULT_NAME, |n| n.get_ref());
        let span = raw.name.as_ref().map_or(place.clone(), Spanned::span);
        settings::name(earlier, name).map_err(|problem| self.wrong(span, "name", problem))?;
        let mut group = TaskGroup::new(name, BandwidthLimits::default());
        if let Some(parent) = &raw.parent {
            let index = settings::parent(earlier, parent.get_ref());
            group.parent = Some(self.at("parent", parent, index)?);
        }
        for role in raw.tasks.iter().flat_map(|t| t.get_ref()) {
            group.roles.push(self.at("tasks", role, settings::role(program, role.get_ref()))?);
        }
        let given = [&raw.quota, &raw.period, &raw.burst, &raw.phase];
        for (key, value) in settings::KEYS.into_iter().zip(given) {
            if let Some(value) = value {
                self.at(key, value, settings::set(&mut group, key, value.get_ref()))?;
            }
        }
        let apart = settings::apart(earlier, &group);
        apart.map_err(|problem| self.wrong(place.clone(), "group", problem))?;
        settings::possible(&group).map_err(|problem| self.wrong(place, "group", problem))?;
        Ok(group)
    }
}
