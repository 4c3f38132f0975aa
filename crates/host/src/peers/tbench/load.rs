//! What tbench's clients ask for: exchanges, one after the other and from the start again.
//! They are those of the catalogue's workload, or of a load file of dbench 4, with the
//! sizes that tbench gives them (sockio.c of dbench 4.0, <https://dbench.samba.org>).

use std::collections::BTreeMap;
use std::fs;

use reveille_workload::{ChannelKind, FOR_EVER, Op, Role};

use crate::HostError;

/// A message of either side is shorter than this: the server's buffer.
pub(super) const MAX_BYTES: usize = 70_000;
/// Bytes of a read's answer or of a write's request beside the contents.
const HEADER: u32 = 59;
/// Part of a path in load files that stands for a client's own directory; the client's
/// number takes the place of the 1.
const OWN_DIRECTORY: &str = "client1";

/// What a client may ask for, in the order of the original's table. The last is what the
/// catalogue's workload asks for besides reads and writes.
pub(super) const OPERATIONS: [&str; 18] = [
    "NTCreateX",
    "Close",
    "Rename",
    "Unlink",
    "Deltree",
    "Rmdir",
    "Mkdir",
    "Qpathinfo",
    "Qfileinfo",
    "Qfsinfo",
    "Sfileinfo",
    "Find",
    "WriteX",
    "ReadX",
    "LockX",
    "UnlockX",
    "Flush",
    "Other",
];

/// Number of an operation that [`OPERATIONS`] has.
fn operation(name: &str) -> u8 {
    OPERATIONS.iter().position(|o| *o == name).expect("an operation of the table") as u8
}

/// One operation of a client.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Exchange {
    /// Number in [`OPERATIONS`].
    pub operation: u8,
    /// How often the name of the client's own directory is in the request.
    own_names: u8,
    /// Length of the request of a client with a number of one digit; 0 if nothing is sent.
    pub request: u32,
    /// Length of the answer.
    pub response: u32,
    /// Bytes of contents in either, which count as throughput.
    pub contents: u32,
}

impl Exchange {
    /// As the client with this number sends it: names have two bytes for each letter.
    pub fn of_client(self, client: usize) -> Exchange {
        let further_digits = client.checked_ilog10().unwrap_or(0);
        Exchange { request: self.request + 2 * further_digits * u32::from(self.own_names), ..self }
    }
}

/// The exchanges of the catalogue's workload.
pub(super) fn catalogue() -> Result<Vec<Exchange>, HostError> {
    let program = reveille_workload::find("tbench").and_then(|w| w.build(1, &BTreeMap::new()));
    let program = program.map_err(|e| HostError::input(e.to_string(), "report it"))?;
    debug_assert!(program.channels.iter().all(|&kind| kind == ChannelKind::Tcp));
    let (requests, responses) = (messages(&program.roles[0]), messages(&program.roles[1]));
    let exchange = |(request, response): (&Message, &Message)| {
        let name = match request.counted {
            0 => "Other",
            _ if request.bytes > response.bytes => "WriteX",
            _ => "ReadX",
        };
        let contents = match name {
            "Other" => 0,
            _ => request.bytes.max(response.bytes) - HEADER,
        };
        Exchange {
            operation: operation(name),
            own_names: 0,
            request: request.bytes,
            response: response.bytes,
            contents,
        }
    };
    Ok(requests.iter().zip(&responses).map(exchange).collect())
}

/// What a role sends at a time, and counts after it.
struct Message {
    bytes: u32,
    counted: u32,
}

/// All that a role sends until it starts again, loops unrolled.
fn messages(role: &Role) -> Vec<Message> {
    let (mut messages, mut rounds) = (Vec::<Message>::new(), vec![0; role.ops.len()]);
    let mut at = 0;
    while let Some(op) = role.ops.get(at) {
        match *op {
            Op::Send { bytes, .. } => messages.push(Message { bytes, counted: 0 }),
            Op::Count(n) => {
                if let Some(message) = messages.last_mut() {
                    message.counted += n;
                }
            }
            // The program, behind what is done once.
            Op::Again { times: FOR_EVER, .. } => break,
            Op::Again { back, times, .. } => {
                rounds[at] += 1;
                if rounds[at] < times {
                    at -= usize::from(back);
                    continue;
                }
                rounds[at] = 0;
            }
            _ => {}
        }
        at += 1;
    }
    messages
}

/// Reads a load file.
///
/// # Errors
/// [`HostError::Input`] with file and line of what is no operation of dbench 4.
pub(super) fn read(path: &str) -> Result<Vec<Exchange>, HostError> {
    let text = fs::read(path).map_err(|error| {
        HostError::system(
            format!("read the load file {path}"),
            error,
            "give the path of dbench's client.txt (--loadfile)",
        )
    })?;
    let exchanges = parse(path, &String::from_utf8_lossy(&text))?;
    if exchanges.iter().all(|e| e.request == 0) {
        let problem = format!("{path}: no operation that sends anything");
        return Err(HostError::input(problem, "give dbench's client.txt, or leave out --loadfile"));
    }
    Ok(exchanges)
}

fn parse(path: &str, text: &str) -> Result<Vec<Exchange>, HostError> {
    let mut exchanges = Vec::new();
    for (number, line) in text.lines().enumerate() {
        let words = words(line);
        if words.len() < 2 || words[0].starts_with('#') {
            continue;
        }
        let exchange = of_line(&words).map_err(|problem| {
            let problem = format!("{path}:{}: {problem}", number + 1);
            HostError::input(problem, "use a load file of dbench 4, such as its client.txt")
        })?;
        exchanges.push(exchange);
    }
    Ok(exchanges)
}

/// Words of a line: apart by spaces, unless in quotes.
fn words(line: &str) -> Vec<String> {
    let (mut words, mut word, mut quoted) = (Vec::new(), String::new(), false);
    for letter in line.chars() {
        match letter {
            '"' => quoted = !quoted,
            ' ' | '\t' | '\r' if !quoted => {
                if !word.is_empty() {
                    words.push(std::mem::take(&mut word));
                }
            }
            _ => word.push(letter),
        }
    }
    if !word.is_empty() {
        words.push(word);
    }
    words
}

fn of_line(words: &[String]) -> Result<Exchange, String> {
    let name = words[0].as_str();
    let number = |at: usize| -> Result<u32, String> {
        let word = words.get(at).ok_or_else(|| format!("`{name}` with too few values"))?;
        word.parse().map_err(|_| format!("`{word}` of `{name}` is no number"))
    };
    // Each letter of a path takes two bytes; the client puts `.` before it.
    let path = |at: usize| words.get(at).map_or(0, |path| 2 * (path.chars().count() as u32 + 1));
    let own = |at: usize| words.get(at).map_or(0, |path| path.matches(OWN_DIRECTORY).count());
    let mut own_names = own(1);
    let (label, request, response, contents) = match name {
        "NTCreateX" => ("NTCreateX", 74 + path(1), 87, 0),
        "Close" => ("Close", 47, 39, 0),
        "Rename" => {
            own_names += own(2);
            ("Rename", 47 + path(1) + path(2), 39, 0)
        }
        "Unlink" => ("Unlink", 43 + path(1), 39, 0),
        // Only the local benchmark does it.
        "Deltree" => ("Deltree", 0, 0, 0),
        "Rmdir" => ("Rmdir", 43 + path(1), 39, 0),
        "Mkdir" => ("Mkdir", 43 + path(1), 39, 0),
        "QUERY_PATH_INFORMATION" => ("Qpathinfo", 55 + path(1), 71, 0),
        "QUERY_FILE_INFORMATION" => ("Qfileinfo", 59, 71, 0),
        "QUERY_FS_INFORMATION" => ("Qfsinfo", 59, 71, 0),
        "SET_FILE_INFORMATION" => ("Sfileinfo", 71, 47, 0),
        "FIND_FIRST" => ("Find", 59 + path(1), size(39, 90, number(4)?), 0),
        "WriteX" => ("WriteX", size(HEADER, 1, number(3)?), 55, number(3)?),
        "ReadX" => ("ReadX", HEADER, size(HEADER, 1, number(4)?), number(4)?),
        "LockX" => ("LockX", 51, 39, 0),
        "UnlockX" => ("UnlockX", 51, 39, 0),
        "Flush" => ("Flush", 41, 39, 0),
        _ => return Err(format!("`{name}` is no operation of tbench")),
    };
    // Room for the largest number that a client can have.
    if request.max(response) as usize + 64 >= MAX_BYTES {
        return Err(format!("`{name}` of more than {} bytes", MAX_BYTES - 64));
    }
    let own_names = own_names.min(3) as u8;
    Ok(Exchange { operation: operation(label), own_names, request, response, contents })
}

/// A message of `fixed` bytes and `n` parts of `each`.
fn size(fixed: u32, each: u32, n: u32) -> u32 {
    n.saturating_mul(each).saturating_add(fixed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_catalogues_mix_is_what_its_file_says() {
        let mix = catalogue().unwrap();
        assert_eq!(mix.len(), 110);
        let of = |name| mix.iter().filter(move |e| e.operation == operation(name));
        let sizes = |name| {
            let mut sizes: Vec<u32> = of(name).map(|e| e.contents).collect();
            sizes.sort_unstable();
            sizes
        };
        assert_eq!(sizes("ReadX"), [vec![4096; 20], vec![4469; 6], vec![61_440; 4]].concat());
        assert_eq!(sizes("WriteX"), [4096, 4096, 4096, 15_400, 15_400, 65_536, 65_536, 65_536]);
        assert!(of("ReadX").all(|e| (e.request, e.response) == (59, 59 + e.contents)));
        assert!(of("WriteX").all(|e| (e.request, e.response) == (59 + e.contents, 55)));
        assert!(of("Other").all(|e| e.contents == 0 && e.request < 200 && e.response < 200));
    }

    #[test]
    fn lines_have_the_sizes_that_tbench_sends() {
        // Sizes as strace shows them for dbench 4.0's tbench, client 0.
        let text = "Deltree \"\\clients\\client1\" NT_STATUS_OK\n\
            Mkdir \"\\clients\" NT_STATUS_OK\n\
            NTCreateX \"\\clients\\client1\" 0x1 0x2 16385 NT_STATUS_OK\n\
            # nothing\n\
            Close 16385 NT_STATUS_OK\n\
            WriteX 9938 65534 1 1 NT_STATUS_OK\n\
            ReadX 9938 0 4096 512 NT_STATUS_OK\n\
            FIND_FIRST \"\\clients\\client1\\FILLER.*\" 260 1366 2 NT_STATUS_OK\n";
        let exchanges = parse("client.txt", text).unwrap();
        let sizes: Vec<_> = exchanges.iter().map(|e| (e.request, e.response, e.contents)).collect();
        let find = 59 + 2 * "./clients/client0/FILLER.*".len() as u32;
        let expected = [
            (0, 0, 0),
            (61, 39, 0),
            (108, 87, 0),
            (47, 39, 0),
            (60, 55, 1),
            (59, 571, 512),
            (find, 219, 0),
        ];
        assert_eq!(sizes, expected);
        assert_eq!(exchanges[2].of_client(9).request, 108);
        assert_eq!(exchanges[2].of_client(10).request, 110);
        assert_eq!(exchanges[2].of_client(123).request, 112);
    }

    #[test]
    fn other_lines_are_refused_with_their_place() {
        for (line, word) in [
            ("Sleep 100 NT_STATUS_OK", "`Sleep`"),
            ("1.5 Close 3 NT_STATUS_OK", "`1.5`"),
            ("WriteX 1 2", "too few"),
            ("WriteX 1 2 -3 4 NT_STATUS_OK", "`-3`"),
            ("ReadX 1 2 3 4294967295 NT_STATUS_OK", "more than"),
        ] {
            let text = format!("Flush 1 NT_STATUS_OK\n{line}\n");
            let error = parse("l.txt", &text).unwrap_err().to_string();
            assert!(error.contains("l.txt:2:") && error.contains(word), "{error}");
        }
    }
}
