//! Reads hwloc XML exports (`lstopo --of xml`), version 1 and 2: the usual format for publishing a
//! machine's topology.

use std::collections::HashMap;
use std::ops::Range;
use std::path::Path;

use reveille_place::{InputError, Mistake, Source};
use roxmltree::{Document, Node, NodeId, ParsingOptions};

use crate::found::{self, FoundCpu};
use crate::machine::Machine;
use crate::topology::MAX_CPUS;
use crate::unlike::{CpuKind, architecture_warning, kinds_warning};

/// Elements that are read before a file is refused: some 8 per CPU are usual.
const MAX_ELEMENTS: u32 = 1_000_000;
/// Attributes of one element: hwloc writes some twenty, and each is compared with all others.
const MAX_ATTRIBUTES: usize = 256;
/// Elements inside each other: hwloc nests some ten.
const MAX_DEPTH: usize = 64;

/// The memory node below or around each element looked at so far.
type MemoryNodes<'a, 'd> = HashMap<NodeId, Option<Node<'a, 'd>>>;

/// Reads an hwloc export; `file` names it in messages.
///
/// PUs outside the `cpuset`, `online_cpuset` (version 1) or `allowed_cpuset` of the
/// machine are left out.
/// The last-level cache is the outermost data or unified cache around a core;
/// without one it is the package. Costs are those of the default cost model.
///
/// # Errors
/// [`InputError::File`] with the line: not XML, not from hwloc, no usable PU,
/// PUs without `os_index` or with the same one, or too many of them.
pub fn parse_hwloc(file: &str, text: &str) -> Result<Machine, InputError> {
    let export = Export(Source::new(file, text));
    if let Some(at) = crowded_tag(text) {
        let problem = format!("an element has more than {MAX_ATTRIBUTES} attributes");
        let help = "export it again: lstopo --of xml";
        return Err(export.wrong(at..at + 1, None, problem, help));
    }
    // hwloc names its DTD; roxmltree does not fetch it and bounds entity expansion.
    let options =
        ParsingOptions { allow_dtd: true, nodes_limit: MAX_ELEMENTS, ..Default::default() };
    let doc = Document::parse_with_options(text, options).map_err(|error| {
        let at = error.pos();
        let span = offset_of(text, at.row, at.col);
        export.wrong(span..span, None, error.to_string(), "export it again: lstopo --of xml")
    })?;
    let root = doc.root_element();
    if root.tag_name().name() != "topology" {
        let problem =
            format!("is not an hwloc export: it begins with <{}>", root.tag_name().name());
        let help = "make one with: lstopo --of xml machine.xml";
        return Err(export.wrong(root.range(), None, problem, help));
    }
    let cpus = export.cpus(root)?;
    let topology = found::topology(cpus).map_err(|error| {
        let help = "the export describes a machine that is not supported";
        export.wrong(root.range(), None, error.to_string(), help)
    })?;
    let name = Path::new(file).file_stem().map_or(file.into(), |s| s.to_string_lossy());
    let os_cpus: Vec<u32> = topology.cpus().iter().map(|place| place.os_cpu).collect();
    let warnings = kinds_warning(&kinds(root, &os_cpus)).into_iter().chain(architecture(root));
    let source = format!("hwloc export {file}");
    found::machine(&name, source, topology, Vec::new(), warnings.collect())
}

/// The kinds of CPU that hwloc 2.4 and later tells apart.
fn kinds(root: Node, os_cpus: &[u32]) -> Vec<CpuKind> {
    let kind = |(number, kind): (usize, Node)| {
        let set = CpuSet::parse(kind.attribute("cpuset")?)?;
        let cpus = os_cpus.iter().filter(|&&cpu| set.has(cpu)).count();
        let name = info(kind, "CoreType").map_or(format!("of kind {number}"), str::to_owned);
        (cpus > 0).then_some(CpuKind { name, cpus })
    };
    root.children().filter(|n| n.has_tag_name("cpukind")).enumerate().filter_map(kind).collect()
}

fn architecture(root: Node) -> Option<String> {
    let machine = objects(root).next()?;
    architecture_warning(info(machine, "Architecture")?)
}

/// The value of an `info` of this name.
fn info<'a>(node: Node<'a, '_>, name: &str) -> Option<&'a str> {
    let named = |n: &Node| n.has_tag_name("info") && n.attribute("name") == Some(name);
    node.children().find(named)?.attribute("value")
}

struct Export(Source);

impl Export {
    /// Marks the first line of an element: a whole one can be the whole file.
    fn wrong(
        &self,
        span: Range<usize>,
        key: Option<&str>,
        problem: impl Into<String>,
        help: &str,
    ) -> InputError {
        let text = &self.0.text;
        let rest = &text[span.start.min(text.len())..];
        let first_line = span.start + rest.find('\n').unwrap_or(rest.len());
        let span = span.start..span.end.min(first_line);
        self.0.error(&span, key, Mistake::new(problem, help))
    }

    fn cpus(&self, root: Node) -> Result<Vec<FoundCpu>, InputError> {
        let usable = self.usable(root)?;
        let mut seen = HashMap::new();
        let mut memory = MemoryNodes::new();
        let mut cpus = Vec::new();
        for pu in objects(root).filter(|n| kind(*n) == "PU") {
            let os_cpu = self.os_index(pu)?;
            if let Some(earlier) = seen.insert(os_cpu, pu.range().start) {
                let line = self.0.line(earlier);
                let problem = format!("PU {os_cpu} appears twice, first on line {line}");
                let help = "each PU has its own os_index";
                return Err(self.wrong(pu.range(), Some("os_index"), problem, help));
            }
            if !usable.iter().all(|set| set.has(os_cpu)) {
                continue;
            }
            if cpus.len() == MAX_CPUS {
                let problem = format!("more than {MAX_CPUS} PUs");
                return Err(self.wrong(pu.range(), None, problem, "restrict the export"));
            }
            if pu.ancestors().nth(MAX_DEPTH).is_some() {
                let problem = format!("a PU lies in more than {MAX_DEPTH} elements");
                return Err(self.wrong(pu.range(), None, problem, "export it again"));
            }
            cpus.push(found_cpu(pu, os_cpu, &mut memory));
        }
        if cpus.is_empty() {
            let problem =
                if seen.is_empty() { "has no PU object" } else { "has no PU that is online" };
            let help = "export with PUs: lstopo --of xml, without --no-smt or --ignore PU";
            return Err(self.wrong(root.range(), None, problem, help));
        }
        Ok(cpus)
    }

    /// The sets that a PU must be in: online, and allowed to the exporter.
    fn usable(&self, root: Node) -> Result<Vec<CpuSet>, InputError> {
        let Some(machine) = objects(root).next() else { return Ok(Vec::new()) };
        let mut sets = Vec::new();
        for key in ["cpuset", "online_cpuset", "allowed_cpuset"] {
            if let Some(text) = machine.attribute(key) {
                let set = CpuSet::parse(text).ok_or_else(|| {
                    let shown: String = text.chars().take(40).collect();
                    let problem = format!("`{shown}` is no cpuset");
                    let help = "cpusets look like 0x000000ff or 0xf...f";
                    self.wrong(machine.range(), Some(key), problem, help)
                })?;
                sets.push(set);
            }
        }
        Ok(sets)
    }

    fn os_index(&self, pu: Node) -> Result<u32, InputError> {
        let text = pu.attribute("os_index");
        text.and_then(|t| t.parse().ok()).ok_or_else(|| {
            let problem = match text {
                None => "a PU has none".to_owned(),
                Some(t) => format!("`{}` is no CPU number", t.chars().take(40).collect::<String>()),
            };
            let help = "each PU has the number of its CPU";
            self.wrong(pu.range(), Some("os_index"), problem, help)
        })
    }
}

/// Where a tag with too many attributes begins. Values are told from names by their quotes.
fn crowded_tag(text: &str) -> Option<usize> {
    let (mut tag, mut quote, mut values) = (None, None, 0);
    for (at, byte) in text.bytes().enumerate() {
        match (tag, quote, byte) {
            (None, _, b'<') => (tag, values) = (Some(at), 0),
            (Some(_), Some(open), byte) if byte == open => quote = None,
            (Some(_), None, b'>') => tag = None,
            (Some(_), None, b'"' | b'\'') => {
                quote = Some(byte);
                values += 1;
                if values > MAX_ATTRIBUTES {
                    return tag;
                }
            }
            _ => {}
        }
    }
    None
}

fn found_cpu<'a, 'd>(pu: Node<'a, 'd>, os_cpu: u32, memory: &mut MemoryNodes<'a, 'd>) -> FoundCpu {
    let around = |what: &dyn Fn(Node) -> bool| pu.ancestors().skip(1).find(|n| what(*n));
    let id = |node: Option<Node>, otherwise: Node| u64::from(node.unwrap_or(otherwise).id().get());
    let machine = pu.document().root_element();

    let core = around(&|n| kind(n) == "Core").unwrap_or(pu);
    // `Socket` is the name before hwloc 1.11.
    let package = around(&|n| matches!(kind(n), "Package" | "Socket"));
    let llc = core.ancestors().skip(1).filter(|n| holds_data(*n)).last();
    let cluster = around(&|n| n.attribute("subtype") == Some("Cluster") || holds_level_2(n));
    FoundCpu {
        os_cpu,
        core: id(Some(core), pu),
        cluster: cluster.map(|n| u64::from(n.id().get())),
        llc: id(llc.or(package), machine),
        node: id(memory_node(pu, memory), machine),
        socket: id(package, machine),
    }
}

/// The memory node of a PU: an object around it in version 1, a memory child of
/// one in version 2 (possibly behind a memory-side cache). Of several, such as
/// DRAM and HBM, the first is the default one.
fn memory_node<'a, 'd>(pu: Node<'a, 'd>, known: &mut MemoryNodes<'a, 'd>) -> Option<Node<'a, 'd>> {
    let of = |n: Node<'a, 'd>| {
        if kind(n) == "NUMANode" {
            return Some(n);
        }
        n.children().find_map(|child| match kind(child) {
            "NUMANode" => Some(child),
            "MemCache" => objects(child).find(|m| kind(*m) == "NUMANode"),
            _ => None,
        })
    };
    // Elements have many PUs, and may have many children.
    pu.ancestors().skip(1).find_map(|n| *known.entry(n.id()).or_insert_with(|| of(n)))
}

/// Is this a cache that holds data? In version 1 all caches are of type `Cache`,
/// and `cache_type` 2 means instructions.
fn holds_data(node: Node) -> bool {
    match kind(node) {
        "Cache" => node.attribute("cache_type") != Some("2"),
        "L1Cache" | "L2Cache" | "L3Cache" | "L4Cache" | "L5Cache" => true,
        _ => false,
    }
}

/// Is this a level-2 cache? Version 1 gives the level as `depth`.
fn holds_level_2(node: Node) -> bool {
    kind(node) == "L2Cache" || kind(node) == "Cache" && node.attribute("depth") == Some("2")
}

fn objects<'a, 'd>(node: Node<'a, 'd>) -> impl Iterator<Item = Node<'a, 'd>> {
    node.descendants().filter(|n| n.has_tag_name("object"))
}

fn kind<'a>(node: Node<'a, '_>) -> &'a str {
    node.attribute("type").filter(|_| node.has_tag_name("object")).unwrap_or("")
}

/// A set of CPU numbers in hwloc's notation: 32-bit words, highest first, an empty
/// word for 0, and `0xf...f` in front for "and all above".
struct CpuSet {
    words: Vec<u32>,
    full_above: bool,
}

impl CpuSet {
    fn parse(text: &str) -> Option<Self> {
        let (full_above, text) = match text.strip_prefix("0xf...f") {
            Some("") => return Some(Self { words: Vec::new(), full_above: true }),
            Some(rest) => (true, rest.strip_prefix(',')?),
            None => (false, text),
        };
        let word = |part: &str| match part.strip_prefix("0x") {
            Some(hex) if hex.len() <= 8 => u32::from_str_radix(hex, 16).ok(),
            _ if part.is_empty() => Some(0),
            _ => None,
        };
        let words = text.rsplit(',').map(word).collect::<Option<Vec<u32>>>()?;
        Some(Self { words, full_above })
    }

    fn has(&self, cpu: u32) -> bool {
        match self.words.get(cpu as usize / 32) {
            Some(word) => word >> (cpu % 32) & 1 == 1,
            None => self.full_above,
        }
    }
}

/// Byte offset of a line and column, both from 1.
fn offset_of(text: &str, row: u32, col: u32) -> usize {
    let before: usize = text.split_inclusive('\n').take(row as usize - 1).map(str::len).sum();
    let line = &text[before.min(text.len())..];
    before + line.chars().take(col as usize - 1).map(char::len_utf8).sum::<usize>()
}
