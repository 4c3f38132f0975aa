//! Imports a table of requests: arrival, CPU time and, if known, thread and completion.

use std::cmp::Reverse;
use std::collections::{BinaryHeap, HashMap};

use csv::StringRecord;
use reveille_measure::{seconds_text, unit_ns};
use reveille_place::Mistake;

use crate::decimal::nanoseconds;
use crate::valid::{MAX_ROWS, MAX_SPAN_NS, MAX_THREADS};
use crate::{Demand, InputError, Ns, Usage};

/// Default limit on the threads that requests without a thread are spread over.
pub const DEFAULT_THREADS: u32 = 1024;
/// A line earlier than a previous one by more than this means that the clock was set back or the
/// file is not sorted by time.
const STEP_BACK_NS: i128 = 1_000_000_000;

const HEADER: &str =
    "write a header such as at_ms,cpu_us (and thread, done_ms); units are s, ms, us, ns";

const ONE_OF_TWO: &str = "keep one of the two: delete or rename the other";

/// What gives a recording in place of a trace.
const INSTEAD: &str = "record the group by `reveille record --cgroup NAME --how trace`, or import a \
                       CSV of its requests (at_ms,cpu_us); `compare --workload trace.txt` repeats a \
                       trace printed as text";

/// What a trace of the scheduler is called, if this is one.
fn scheduler_trace(bytes: &[u8]) -> Option<&'static str> {
    /// Events of a trace as text, after a few lines of comments at most.
    const EVENTS: [&str; 3] = ["sched_switch:", "sched_wakeup:", "sched_waking:"];
    if bytes.starts_with(b"PERFILE2") {
        return Some("perf's data");
    }
    if bytes.starts_with(b"\x17\x08Dtracing") {
        return Some("trace-cmd's data");
    }
    let head = String::from_utf8_lossy(&bytes[..bytes.len().min(16_384)]);
    let mut lines = head.lines().filter(|line| !line.trim().is_empty());
    let first = lines.next()?;
    let event = |line: &str| EVENTS.iter().any(|event| line.contains(event));
    // A table's header has commas, and no event.
    let named = first.starts_with("# tracer:");
    let ftrace = named || event(first) || !first.contains(',') && lines.any(event);
    ftrace.then_some("a trace as text (ftrace, trace-cmd or perf script)")
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct CsvOptions {
    /// Maximum number of threads to spread requests over if the table names none;
    /// [`DEFAULT_THREADS`] by default.
    pub threads: Option<u32>,
    /// Accept lines that are not sorted by time.
    pub unordered: bool,
}

/// A column of times, and its unit in nanoseconds.
#[derive(Clone, Debug)]
struct TimeColumn {
    index: usize,
    name: String,
    unit_ns: Ns,
}

struct Header {
    at: TimeColumn,
    cpu: TimeColumn,
    done: Option<TimeColumn>,
    latency: Option<TimeColumn>,
    thread: Option<usize>,
}

/// A line, on the file's clock.
struct Request {
    at: i128,
    cpu_ns: Ns,
    done: Option<i128>,
    thread: u32,
}

impl Usage {
    /// Reads a table of requests: columns `at` and `cpu`, optionally `thread` and `done`, with
    /// units in their names. Errors name it `file`; the recording is called `name`.
    ///
    /// The recording begins with the first arrival and ends one mean gap after the last, so that it
    /// can be repeated. Without threads, a request goes to the thread that would be free first on
    /// unlimited CPUs, or to a new one if all are busy.
    ///
    /// # Errors
    /// [`InputError`] with the line, the column and the fix.
    pub fn from_csv(
        file: &str,
        name: &str,
        bytes: &[u8],
        options: CsvOptions,
    ) -> Result<Usage, InputError> {
        if options.threads.is_some_and(|n| n == 0 || n > MAX_THREADS) {
            let fix = format!("use 1 to {MAX_THREADS}");
            let mistake = Mistake::new("that number of threads is not possible", fix);
            return Err(mistake.in_file(file));
        }
        if let Some(trace) = scheduler_trace(bytes) {
            let problem = format!("is {trace}: traces of the scheduler are not imported");
            return Err(Mistake::new(problem, INSTEAD).in_file(file));
        }
        let reader = Reader { file, bytes, unordered: options.unordered };
        let (header, mut requests) = reader.read()?;
        requests.sort_by_key(|request| request.at);
        let usage = recording(name, &header, &requests, options.threads);
        usage.and_then(Usage::checked).map_err(|mistake| mistake.in_file(file))
    }
}

struct Reader<'a> {
    file: &'a str,
    bytes: &'a [u8],
    unordered: bool,
}

impl Reader<'_> {
    fn read(&self) -> Result<(Header, Vec<Request>), InputError> {
        let mut builder = csv::ReaderBuilder::new();
        let mut reader = builder.has_headers(false).trim(csv::Trim::All).from_reader(self.bytes);
        let mut read = |line: &mut StringRecord| {
            let from = reader.position().byte() as usize;
            let more = reader.read_record(line);
            // A quote that stays open would hide all lines up to the next one.
            if self.bytes[from..reader.position().byte() as usize].trim_ascii().contains(&b'\n') {
                let problem = "a quote opens in this line and does not close in it";
                let fix = "close the quote in this line, or delete it";
                return Err(Mistake::new(problem, fix).at_line(self.file, self.line_at(from)));
            }
            more.map(|more| more.then_some(from)).map_err(|error| self.unread(from, error))
        };
        let mut line = StringRecord::new();
        let first = read(&mut line)?.unwrap_or(0);
        let header = header(&line)
            .map_err(|mistake| mistake.at_line::<InputError>(self.file, self.line_at(first)))?;
        let mut requests = Vec::new();
        let mut threads = HashMap::new();
        // By thread: the latest arrival so far, and where its line begins.
        let mut latest: Vec<(i128, usize)> = Vec::new();
        while let Some(from) = read(&mut line)? {
            let request = self.request(&header, &line, from, &mut threads)?;
            let thread = request.thread as usize;
            latest.resize(latest.len().max(thread + 1), (i128::MIN, 0));
            let (before, before_from) = latest[thread];
            if request.at >= before {
                latest[thread] = (request.at, from);
            } else if before - request.at > STEP_BACK_NS && !self.unordered {
                let back_s = (before - request.at) as f64 / 1e9;
                let before_line = self.line_at(before_from);
                let problem = format!("{back_s:.3} s earlier than line {before_line}");
                let fix = "if lines are in no order, add --unordered; if a clock was set back, \
                           import the lines before and those from here on as files of their own";
                return Err(self.wrong(from, &header.at.name, Mistake::new(problem, fix)));
            }
            if requests.len() == MAX_ROWS {
                let mistake = Mistake::new(
                    format!("more than {MAX_ROWS} requests"),
                    "import a shorter part of it",
                );
                return Err(mistake.at_line(self.file, self.line_at(from)));
            }
            requests.push(request);
        }
        Ok((header, requests))
    }

    fn request(
        &self,
        header: &Header,
        line: &StringRecord,
        from: usize,
        threads: &mut HashMap<String, u32>,
    ) -> Result<Request, InputError> {
        let time = |column: &TimeColumn| {
            let text = line.get(column.index).unwrap_or_default();
            time(text, column).map_err(|mistake| self.wrong(from, &column.name, mistake))
        };
        let refuse = |column: &str, problem: String, fix: &str| {
            Err(self.wrong(from, column, Mistake::new(problem, fix)))
        };
        let (at, cpu) = (time(&header.at)?, time(&header.cpu)?);
        if cpu > i128::from(MAX_SPAN_NS) {
            let fix = "look whether the unit in the header is right";
            return refuse(&header.cpu.name, "more than 31 days of CPU time".into(), fix);
        }
        let filled = |column: &&TimeColumn| !line.get(column.index).unwrap_or_default().is_empty();
        let latency = header.latency.as_ref().filter(filled).map(time).transpose()?;
        let done = match &header.done {
            _ if latency.is_some() => latency.map(|latency| at + latency),
            Some(column) if filled(&column) => {
                let done = time(column)?;
                if done < at {
                    let problem = "earlier than the arrival".to_owned();
                    let fix = "`done` is a time on the clock of `at`; a duration is called \
                               `latency`; leave it empty where it is not known";
                    return refuse(&column.name, problem, fix);
                }
                Some(done)
            }
            _ => None,
        };
        let thread = match header.thread.map(|index| line.get(index).unwrap_or_default()) {
            None => 0,
            Some("") => {
                let fix = "name the thread in every line, or leave the column out";
                return refuse("thread", "is empty".into(), fix);
            }
            Some(name) => match threads.get(name) {
                Some(&thread) => thread,
                None if threads.len() == MAX_THREADS as usize => {
                    let fix = "leave the column out: requests are then spread over --threads";
                    return refuse("thread", format!("more than {MAX_THREADS} threads"), fix);
                }
                None => {
                    let thread = threads.len() as u32;
                    threads.insert(name.to_owned(), thread);
                    thread
                }
            },
        };
        Ok(Request { at, cpu_ns: cpu as Ns, done, thread })
    }

    fn wrong(&self, from: usize, column: &str, Mistake { problem, help }: Mistake) -> InputError {
        let mistake = Mistake::new(format!("column `{column}`: {problem}"), help);
        mistake.at_line(self.file, self.line_at(from))
    }

    /// The line that begins at or, after blank ones, behind this byte.
    fn line_at(&self, from: usize) -> u64 {
        let (before, rest) = self.bytes.split_at(from);
        let blank = &rest[..rest.len() - rest.trim_ascii_start().len()];
        1 + before.iter().chain(blank).filter(|byte| **byte == b'\n').count() as u64
    }

    fn unread(&self, from: usize, error: csv::Error) -> InputError {
        let mistake = match error.kind() {
            csv::ErrorKind::UnequalLengths { expected_len, len, .. } => {
                let problem = format!("{len} fields, and the header has {expected_len}");
                Mistake::new(problem, "write as many fields as the header has")
            }
            csv::ErrorKind::Utf8 { .. } => {
                Mistake::new("is no UTF-8 text", "save the table as CSV in UTF-8")
            }
            _ => Mistake::new(format!("cannot be read: {error}"), HEADER),
        };
        mistake.at_line(self.file, self.line_at(from))
    }
}

fn header(names: &StringRecord) -> Result<Header, Mistake> {
    if let (1, Some(one)) = (names.len(), names.get(0))
        && let Some(separator) = one.chars().find(|c| matches!(c, ';' | '\t' | '|'))
    {
        let problem = format!("its columns are separated by {separator:?}");
        return Err(Mistake::new(problem, "separate them by commas"));
    }
    let (mut at, mut cpu, mut done, mut latency, mut thread) = (None, None, None, None, None);
    for (index, name) in names.iter().enumerate() {
        let lower = name.trim_start_matches('\u{feff}').to_lowercase();
        if lower == "thread" {
            if thread.replace(index).is_some() {
                return Err(Mistake::new("two columns `thread`", ONE_OF_TWO));
            }
            continue;
        }
        let (what, unit) = lower.split_once('_').unwrap_or((&lower, ""));
        let slot = match what {
            "at" => &mut at,
            "cpu" => &mut cpu,
            "done" => &mut done,
            "latency" => &mut latency,
            _ => continue,
        };
        let Some(unit_ns) = unit_ns(unit).map(|ns| ns as Ns) else {
            let problem = match unit {
                "" => format!("column `{name}` has no unit"),
                _ => format!("column `{name}` has no unit that is known here"),
            };
            return Err(Mistake::new(
                problem,
                format!("call it {what}_s, {what}_ms, {what}_us or {what}_ns"),
            ));
        };
        if slot.replace(TimeColumn { index, name: lower.clone(), unit_ns }).is_some() {
            return Err(Mistake::new(format!("two columns for `{what}`"), ONE_OF_TWO));
        }
    }
    let missing = |what: &str| {
        let here: Vec<String> = names.iter().map(|name| format!("`{name}`")).collect();
        let here = if here.is_empty() { "nothing".into() } else { here.join(", ") };
        Mistake::new(format!("no column for `{what}`; the header has {here}"), HEADER)
    };
    let (at, cpu) = (at.ok_or_else(|| missing("at"))?, cpu.ok_or_else(|| missing("cpu"))?);
    if done.is_some() && latency.is_some() {
        return Err(Mistake::new("columns for both `done` and `latency`", ONE_OF_TWO));
    }
    Ok(Header { at, cpu, done, latency, thread })
}

/// Parses a cell that holds a time.
fn time(text: &str, column: &TimeColumn) -> Result<i128, Mistake> {
    let fix = "write a plain number, such as 12 or 0.5";
    if text.is_empty() {
        return Err(Mistake::new("is empty", "write a number, or leave the whole line out"));
    }
    let shown: String = text.chars().take(40).collect();
    let signs = |byte: u8| byte.is_ascii_digit() || b"+-.eE".contains(&byte);
    match nanoseconds(text, column.unit_ns) {
        None if text.bytes().all(signs) && text.parse::<f64>().is_ok() => {
            let fix = "write a plain number of at most 31 days, and look whether the unit is right";
            Err(Mistake::new(format!("`{shown}` is beyond any time"), fix))
        }
        None => Err(Mistake::new(format!("`{shown}` is not a number"), fix)),
        Some(_) if text.starts_with('-') => {
            Err(Mistake::new(format!("`{shown}` is negative"), "write a time of 0 or more"))
        }
        Some(ns) => Ok(ns),
    }
}

/// The recording made from requests sorted by arrival.
fn recording(
    name: &str,
    header: &Header,
    requests: &[Request],
    threads: Option<u32>,
) -> Result<Usage, Mistake> {
    let (Some(first), Some(last)) = (requests.first(), requests.last()) else {
        return Err(Mistake::new("has no requests", "write a line for each, below the header"));
    };
    let length = last.at - first.at;
    if length == 0 {
        let fix = "a recording needs arrivals at different times; look whether the unit is right";
        return Err(Mistake::new("all requests arrive at one time", fix));
    }
    if length > i128::from(MAX_SPAN_NS) {
        let fix = "look whether the unit in the header is right, and for a single wrong time";
        return Err(Mistake::new("the arrivals are more than 31 days apart", fix));
    }
    let mut demands = Vec::with_capacity(requests.len());
    let mut pool = ThreadPool::new(threads.unwrap_or(DEFAULT_THREADS));
    for request in requests {
        let at_ns = (request.at - first.at) as Ns;
        let thread = match header.thread {
            Some(_) => request.thread,
            None => pool.take(at_ns, request.cpu_ns),
        };
        let done_ns = request.done.map(|done| (done - first.at).min(u64::MAX.into()) as Ns);
        demands.push(Demand { at_ns, cpu_ns: request.cpu_ns, thread, done_ns });
    }
    let threads = 1 + demands.iter().map(|demand| demand.thread).max().unwrap_or(0);
    let mean_gap_ns = (length as Ns).div_ceil(demands.len() as Ns - 1).max(1);
    Ok(Usage {
        span_ns: length as Ns + mean_gap_ns,
        threads,
        warnings: coarse(requests)
            .into_iter()
            .chain(warnings(&demands, length as Ns, header, pool.queued))
            .collect(),
        demands,
        // A clock that does not count from 1970 gives no date.
        began_unix_ns: u64::try_from(first.at).ok().filter(|&ns| ns > YEAR_2000_NS),
        ..Usage::idle(name)
    })
}

const YEAR_2000_NS: u64 = 946_684_800_000_000_000;

/// A warning of arrivals in whole seconds, where most requests share theirs with another.
fn coarse(requests: &[Request]) -> Option<String> {
    let whole = requests.iter().all(|request| request.at % 1_000_000_000 == 0);
    let with_another = |number: usize| {
        let at = |n: usize| requests.get(n).map(|request| request.at);
        let here = at(number);
        number.checked_sub(1).is_some_and(|n| at(n) == here) || at(number + 1) == here
    };
    let shared = (0..requests.len()).filter(|&number| with_another(number)).count();
    (whole && 2 * shared > requests.len()).then(|| {
        format!(
            "All arrivals are in whole seconds, and {shared} of {} requests share theirs with another: a \
             plan takes them for batches and advises several times the limit that they need. Log \
             arrivals in milliseconds.",
            requests.len()
        )
    })
}

fn warnings(demands: &[Demand], length_ns: Ns, header: &Header, queued: usize) -> Vec<String> {
    let mut warnings = Vec::new();
    let total = demands.len();
    let fast = |d: &&Demand| d.done_ns.is_some_and(|done| done - d.at_ns < d.cpu_ns);
    let fast = demands.iter().filter(fast).count();
    if fast > 0 {
        warnings.push(format!(
            "{fast} of {total} requests took more CPU time than passed until they were done: is \
             the unit of `{}` right?",
            header.cpu.name
        ));
    }
    if queued > 0 {
        warnings.push(format!(
            "{queued} of {total} requests arrived while all threads were busy, and wait for one."
        ));
    }
    let gap = demands.windows(2).map(|pair| pair[1].at_ns - pair[0].at_ns).max().unwrap_or(0);
    if total > 10 && gap > length_ns / 2 {
        warnings.push(format!(
            "Nothing arrives for {}, more than half of the recording: was a clock set forward?",
            seconds_text(gap)
        ));
    }
    warnings
}

/// Threads on unlimited CPUs, each of which serves its requests in order.
struct ThreadPool {
    limit: u32,
    /// When each becomes free, and its number.
    free_at: BinaryHeap<Reverse<(Ns, u32)>>,
    /// Requests that found no free thread.
    queued: usize,
}

impl ThreadPool {
    fn new(limit: u32) -> ThreadPool {
        ThreadPool { limit, free_at: BinaryHeap::new(), queued: 0 }
    }

    /// The thread that serves a request arriving at `at_ns`.
    fn take(&mut self, at_ns: Ns, cpu_ns: Ns) -> u32 {
        let count = self.free_at.len() as u32;
        let all_busy = self.free_at.peek().is_none_or(|Reverse((free_ns, _))| *free_ns > at_ns);
        let (free_ns, thread) = match self.free_at.peek() {
            Some(&Reverse(first)) if !all_busy || count >= self.limit => {
                self.free_at.pop();
                self.queued += usize::from(all_busy);
                first
            }
            _ => (at_ns, count),
        };
        self.free_at.push(Reverse((free_ns.max(at_ns).saturating_add(cpu_ns), thread)));
        thread
    }
}
