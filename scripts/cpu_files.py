"""The CPU controller's files of a task group, under cgroup v1 or v2."""


class CpuFiles:
    """A group with its directories in `dirs`; `unified` says that they are of cgroup v2."""

    def file(self, name):
        return next(path / name for path in self.dirs if (path / name).exists())

    def limit(self, quota_us):
        """Per 100 ms; None lifts the limit."""
        if self.unified:
            self.file("cpu.max").write_text(f"{quota_us or 'max'} 100000")
        else:
            self.file("cpu.cfs_period_us").write_text("100000")
            self.file("cpu.cfs_quota_us").write_text(str(quota_us or -1))

    def counters(self):
        """Seconds used, periods, throttled periods, seconds throttled."""
        pairs = (line.split() for line in self.file("cpu.stat").read_text().splitlines())
        stat = {key: int(value) for key, value in pairs}
        if self.unified:
            used, throttled = stat["usage_usec"] / 1e6, stat["throttled_usec"] / 1e6
        else:
            used = int(self.file("cpuacct.usage").read_text()) / 1e9
            throttled = stat["throttled_time"] / 1e9
        return [used, stat["nr_periods"], stat["nr_throttled"], throttled]
