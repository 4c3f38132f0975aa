//! The local sockets: statistics and `set`, for root alone. One line of JSON asks, one line
//! answers. Both sockets know both protocols.

use std::fs;
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, Receiver, Sender};
use std::time::{Duration, Instant};

use serde::{Deserialize, Serialize};

use crate::error::ScxError;
use crate::scx_stats;
use crate::stats::Stats;

/// Where the scheduler that runs listens.
pub const SOCKET: &str = "/run/scx_reveille/socket";
/// A client that says nothing for so long is left.
const PATIENCE: Duration = Duration::from_secs(10);
/// No request is longer.
const MAX_REQUEST: u64 = 4096;

/// What a client asks.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Request {
    /// All statistics.
    Stats,
    /// Edits of the features, as `--with` takes them.
    Set(String),
}

/// What it is told.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Answer {
    /// All statistics.
    Stats(Box<Stats>),
    /// Features that are on from now on.
    Features(Vec<String>),
    /// What is wrong, and the fix.
    Refused {
        /// What is wrong.
        problem: String,
        /// The fix.
        help: String,
    },
}

/// A request, and where its answer goes.
type Asked = (Request, Sender<Answer>);

/// The listening end; its files go with it. Each client has a thread, so that none waits for
/// another, nor the scheduler for any.
pub struct Server {
    requests: Receiver<Asked>,
    sender: Sender<Asked>,
    ended: Arc<AtomicBool>,
    paths: Vec<PathBuf>,
}

impl Server {
    /// Listens at `path`, in a directory that only its owner may enter.
    ///
    /// # Errors
    /// A directory or socket that cannot be made.
    pub fn listen(path: &Path) -> Result<Server, ScxError> {
        let (sender, requests) = mpsc::channel();
        let ended = Arc::new(AtomicBool::new(false));
        let mut server = Server { requests, sender, ended, paths: Vec::new() };
        server.listen_also(path)?;
        Ok(server)
    }

    /// Listens at one more path.
    pub fn listen_also(&mut self, path: &Path) -> Result<(), ScxError> {
        let failed = |error| {
            ScxError::io(
                format!("cannot listen at {}", path.display()),
                error,
                "make its directory writable for root",
            )
        };
        let directory = path.parent().unwrap_or(Path::new("/"));
        let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(directory);
        made.map_err(failed)?;
        // Of a loader that was killed: no other runs, for no other scheduler is loaded.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(failed(error)),
            _ => {}
        }
        let listener = UnixListener::bind(path).map_err(failed)?;
        fs::set_permissions(path, fs::Permissions::from_mode(0o600)).map_err(failed)?;
        let (sender, told) = (self.sender.clone(), Arc::clone(&self.ended));
        std::thread::Builder::new()
            .name("socket".to_owned())
            .spawn(move || accept(&listener, &sender, &told))
            .map_err(failed)?;
        self.paths.push(path.to_owned());
        Ok(())
    }

    /// Answers who asks within `wait`, by `answer`.
    pub fn serve(&self, wait: Duration, mut answer: impl FnMut(Request) -> Answer) {
        let until = Instant::now() + wait;
        while let Ok((request, to)) =
            self.requests.recv_timeout(until.saturating_duration_since(Instant::now()))
        {
            // A client that goes away harms nobody but itself.
            let _ = to.send(answer(request));
        }
    }
}

/// Gives each client a thread, until the server is dropped.
fn accept(listener: &UnixListener, requests: &Sender<Asked>, ended: &AtomicBool) {
    loop {
        let Ok((stream, _)) = listener.accept() else {
            // Out of descriptors, for instance: clients that leave return some.
            std::thread::sleep(Duration::from_millis(100));
            continue;
        };
        if ended.load(Ordering::Relaxed) {
            return;
        }
        let requests = requests.clone();
        let spawned = std::thread::Builder::new().name("client".to_owned()).spawn(move || {
            if let Err(error) = converse(&stream, &requests) {
                tracing::debug!("a client of the socket: {error}");
            }
        });
        if let Err(error) = spawned {
            tracing::debug!("a client of the socket: {error}");
        }
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        self.ended.store(true, Ordering::Relaxed);
        for path in &self.paths {
            // Wakes the thread that accepts.
            let _ = UnixStream::connect(path);
            let _ = fs::remove_file(path);
        }
    }
}

fn converse(stream: &UnixStream, requests: &Sender<Asked>) -> io::Result<()> {
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.set_write_timeout(Some(PATIENCE))?;
    let ask = |request| {
        let (to, answer) = mpsc::channel();
        let gone = |_| io::Error::other("the scheduler has ended");
        requests.send((request, to)).map_err(|_| gone(mpsc::RecvError))?;
        answer.recv().map_err(gone)
    };
    let mut reader = BufReader::new(stream);
    loop {
        let mut line = String::new();
        io::Read::take(&mut reader, MAX_REQUEST).read_line(&mut line)?;
        if line.is_empty() {
            return Ok(());
        }
        let mut text = if let Ok(asked) = serde_json::from_str::<scx_stats::Asked>(&line) {
            // Such clients may ask once a minute.
            stream.set_read_timeout(None)?;
            let answer = asked.answer(|| match ask(Request::Stats)? {
                Answer::Stats(stats) => Ok(*stats),
                _ => Err(io::Error::other("no statistics")),
            })?;
            serde_json::to_vec(&answer)?
        } else {
            serde_json::to_vec(&match serde_json::from_str(&line) {
                Ok(request) => ask(request)?,
                Err(error) => Answer::Refused {
                    problem: format!("the request is no line of JSON that is known here: {error}"),
                    help: r#"ask "stats" or {"set":"+FEATURE"}"#.to_owned(),
                },
            })?
        };
        text.push(b'\n');
        (&mut &*stream).write_all(&text)?;
    }
}

/// Asks the scheduler that listens at `path`.
///
/// # Errors
/// Nobody listens there, or not to this user; or what it refuses.
pub fn ask(path: &Path, request: &Request) -> Result<Answer, ScxError> {
    let stream = UnixStream::connect(path).map_err(|error| match error.kind() {
        io::ErrorKind::PermissionDenied => {
            ScxError::refused(format!("{} is for root alone", path.display()), "run it with sudo")
        }
        _ => ScxError::refused(
            format!("no scx_reveille runs here: {}: {error}", path.display()),
            "start it with: sudo scx_reveille",
        ),
    })?;
    let spoken = || -> io::Result<Answer> {
        stream.set_read_timeout(Some(PATIENCE))?;
        let mut text = serde_json::to_vec(request)?;
        text.push(b'\n');
        (&mut &stream).write_all(&text)?;
        let mut line = String::new();
        BufReader::new(&stream).read_line(&mut line)?;
        Ok(serde_json::from_str(&line)?)
    };
    match spoken() {
        Ok(Answer::Refused { problem, help }) => Err(ScxError::Refused { problem, help }),
        Ok(answer) => Ok(answer),
        Err(error) => Err(ScxError::io(
            format!("the scheduler at {} does not answer", path.display()),
            error,
            "it may just be ending; ask again",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_request_is_answered_and_nonsense_refused() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("run/socket");
        let mut server = Server::listen(&path).unwrap();
        let also = dir.path().join("scx/root/stats");
        server.listen_also(&also).unwrap();
        let mode = fs::metadata(&path).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o600);
        let mode = fs::metadata(path.parent().unwrap()).unwrap().permissions().mode();
        assert_eq!(mode & 0o777, 0o700);
        // One that says nothing delays nobody.
        let _silent = UnixStream::connect(&path).unwrap();
        let client = std::thread::spawn({
            let path = path.clone();
            move || {
                // A connection to scx_stats stays open.
                let mut stats = UnixStream::connect(&also).unwrap();
                let mut answers = BufReader::new(stats.try_clone().unwrap());
                for at_ms in [r#""at_ms":1"#, r#""at_ms":2"#] {
                    stats.write_all(b"{\"req\":\"stats\",\"args\":{}}\n").unwrap();
                    let mut line = String::new();
                    answers.read_line(&mut line).unwrap();
                    assert!(line.contains(r#""errno":0"#) && line.contains(at_ms), "{line}");
                }
                let set = ask(&path, &Request::Set("+SWQUEUE".to_owned())).unwrap();
                let mut raw = UnixStream::connect(&path).unwrap();
                raw.write_all(b"what?\n").unwrap();
                let mut line = String::new();
                BufReader::new(raw).read_line(&mut line).unwrap();
                (set, line)
            }
        });
        let mut at_ms = 0;
        while !client.is_finished() {
            server.serve(Duration::from_millis(20), |request| match request {
                Request::Set(edits) => Answer::Features(vec![edits]),
                Request::Stats => {
                    at_ms += 1;
                    Answer::Stats(Box::new(Stats { at_ms, ..Stats::default() }))
                }
            });
        }
        let (set, line) = client.join().unwrap();
        assert_eq!(set, Answer::Features(vec!["+SWQUEUE".to_owned()]));
        assert!(line.contains("refused"), "{line}");
        drop(server);
        assert!(!path.exists());
        let error = ask(&path, &Request::Stats).unwrap_err().to_string();
        assert!(error.contains("no scx_reveille runs here"), "{error}");
    }
}
