//! HTTP: who is asked, with what credentials, and how often until it answers.

use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::time::{Duration, Instant};

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use reveille_place::{InputKind, Mistake, read_input_text};
use serde::Deserialize;
use ureq::Agent;
use ureq::tls::{PemItem, RootCerts, TlsConfig, parse_pem};

use crate::ServerError;

/// From when to when, in whole seconds of Unix time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Span {
    pub until_s: u64,
    pub length_s: u64,
    /// Time between readings; as they were scraped if none is given.
    pub step_s: Option<u64>,
}

impl Span {
    pub(crate) fn begin_s(&self) -> u64 {
        self.until_s.saturating_sub(self.length_s)
    }

    pub(crate) fn end_s(&self) -> u64 {
        self.until_s
    }
}

/// Largest answer that is read.
const MAX_ANSWER: u64 = 1 << 30;
/// Waits before a question is repeated, if the server or the way to it failed.
const AGAIN_AFTER: [Duration; 3] =
    [Duration::from_millis(500), Duration::from_secs(2), Duration::from_secs(8)];
/// How often `stop` is looked at during a request or a wait.
const POLL: Duration = Duration::from_millis(10);
/// No question takes longer.
const TIMEOUT: Duration = Duration::from_secs(120);

/// Where the server is, and how it lets one in.
#[derive(Clone, Debug, Default)]
pub struct Access {
    /// Such as `http://prometheus:9090`, with the path before `/api/v1` if there is one.
    pub url: String,
    /// Sent with every question, such as `Authorization`.
    pub headers: Vec<(String, String)>,
    /// Certificates in PEM that are trusted instead of the system's.
    pub ca: Option<Vec<u8>>,
}

impl Access {
    /// Adds the bearer token in this file.
    ///
    /// # Errors
    /// [`InputError::Option`](reveille_place::InputError::Option) if it cannot be read.
    pub fn bearer(&mut self, file: &Path) -> Result<(), ServerError> {
        let token = secret("--token-file", file)?;
        self.headers.push(("Authorization".into(), format!("Bearer {token}")));
        Ok(())
    }

    /// Adds a user and the password in this file.
    ///
    /// # Errors
    /// [`InputError::Option`](reveille_place::InputError::Option) if it cannot be read.
    pub fn basic(&mut self, user: &str, file: &Path) -> Result<(), ServerError> {
        let password = secret("--password-file", file)?;
        let both = STANDARD.encode(format!("{user}:{password}"));
        self.headers.push(("Authorization".into(), format!("Basic {both}")));
        Ok(())
    }
}

/// The first line of a file.
fn secret(option: &'static str, file: &Path) -> Result<String, ServerError> {
    let text = read_input_text(file, InputKind::DESCRIPTION).map_err(|error| {
        ServerError::option(option, format!("{}: {error}", file.display()), "name a file with it")
    })?;
    let line = text.lines().next().unwrap_or_default().trim();
    if line.is_empty() || !line.bytes().all(|byte| (b' '..=b'~').contains(&byte)) {
        let problem = format!("{}: its first line is no token or password", file.display());
        return Err(ServerError::option(option, problem, "write it there, in ASCII"));
    }
    Ok(line.to_owned())
}

pub struct Server<'a> {
    client: Client,
    stop: &'a AtomicBool,
}

#[derive(Clone)]
struct Client {
    agent: Agent,
    /// Without a slash at its end.
    base: String,
    headers: Vec<(String, String)>,
}

/// What a server says of a question that it does not answer.
#[derive(Deserialize, Default)]
struct Refusal {
    #[serde(default)]
    error: String,
}

pub(crate) enum Failed {
    /// Too much at once: a shorter range may do.
    TooMuch(ServerError),
    Other(ServerError),
}

impl From<Failed> for ServerError {
    fn from(failed: Failed) -> ServerError {
        match failed {
            Failed::TooMuch(error) | Failed::Other(error) => error,
        }
    }
}

impl<'a> Server<'a> {
    /// Sets up connections; asks nothing yet.
    ///
    /// # Errors
    /// [`InputError::Option`](reveille_place::InputError::Option) for a URL or certificates that cannot be used.
    pub fn new(access: Access, stop: &'a AtomicBool) -> Result<Server<'a>, ServerError> {
        let base = access.url.trim_end_matches('/').to_owned();
        let rest = base.strip_prefix("http://").or_else(|| base.strip_prefix("https://"));
        if rest.is_none_or(|host| host.is_empty() || host.contains(['?', '#', ' ', '@'])) {
            let problem = format!("`{}` is no URL of a server", access.url);
            let help = "write http://HOST:9090, with the path before /api/v1 if there is one; \
                        credentials are given by --token-file or --user";
            return Err(ServerError::option("--prometheus", problem, help));
        }
        let roots = match &access.ca {
            None => RootCerts::PlatformVerifier,
            Some(pem) => roots(pem)?,
        };
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let tls = TlsConfig::builder()
            .root_certs(roots)
            .unversioned_rustls_crypto_provider(provider)
            .build();
        let config = Agent::config_builder()
            .tls_config(tls)
            .timeout_global(Some(TIMEOUT))
            .http_status_as_error(false)
            .user_agent(concat!("reveille/", env!("CARGO_PKG_VERSION")))
            .build();
        let client = Client { agent: config.into(), base, headers: access.headers };
        Ok(Server { client, stop })
    }

    /// Asks `/api/v1/PATH`, again if it fails for a while.
    pub(crate) fn ask(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<u8>, Failed> {
        let mut waits = AGAIN_AFTER.into_iter();
        loop {
            let (error, again) = match self.once(path, query) {
                Ok(bytes) => return Ok(bytes),
                Err(Once::Later(error)) => (error, waits.next()),
                Err(Once::TooMuch(error)) => return Err(Failed::TooMuch(error)),
                Err(Once::Never(error)) => (error, None),
            };
            let again_at = Instant::now() + again.ok_or(Failed::Other(error))?;
            while Instant::now() < again_at {
                self.check_stop().map_err(Failed::Other)?;
                std::thread::sleep(POLL);
            }
        }
    }

    fn check_stop(&self) -> Result<(), ServerError> {
        if self.stop.load(Ordering::Relaxed) { Err(ServerError::Interrupted) } else { Ok(()) }
    }

    /// Asks once, in a thread of its own, which is abandoned when the user stops the command.
    fn once(&self, path: &str, query: &[(&str, &str)]) -> Result<Vec<u8>, Once> {
        self.check_stop().map_err(Once::Never)?;
        let client = self.client.clone();
        let path = path.to_owned();
        let query: Vec<_> = query.iter().map(|&(k, v)| (k.to_owned(), v.to_owned())).collect();
        let (answer, answered) = mpsc::channel();
        std::thread::spawn(move || answer.send(client.ask(&path, &query)));
        loop {
            match answered.recv_timeout(POLL) {
                Ok(answer) => return answer,
                Err(RecvTimeoutError::Timeout) => self.check_stop().map_err(Once::Never)?,
                Err(RecvTimeoutError::Disconnected) => panic!("the request has panicked"),
            }
        }
    }
}

impl Client {
    fn ask(&self, path: &str, query: &[(String, String)]) -> Result<Vec<u8>, Once> {
        let url = format!("{}/api/v1/{path}", self.base);
        let error = |problem: String, help: &str| ServerError::Server {
            url: url.clone(),
            mistake: Mistake::new(problem, help),
        };
        let pairs = query.iter().map(|(key, value)| (key.as_str(), value.as_str()));
        let mut request = self.agent.get(&url).query_pairs(pairs);
        for (name, value) in &self.headers {
            request = request.header(name, value);
        }
        let reach = "check the URL of --prometheus, and that this host reaches it";
        let mut response =
            request.call().map_err(|why| Once::Later(error(why.to_string(), reach)))?;
        let status = response.status().as_u16();
        let body = response.body_mut().with_config().limit(MAX_ANSWER).read_to_vec();
        let body = body.map_err(|why| Once::Later(error(why.to_string(), reach)))?;
        let said = || match serde_json::from_slice::<Refusal>(&body) {
            Ok(Refusal { error }) if !error.is_empty() => format!("HTTP {status}: {error}"),
            _ => format!("HTTP {status}"),
        };
        match status {
            200..300 => Ok(body),
            401 | 403 => Err(Once::Never(error(
                said(),
                "give credentials: --token-file FILE, or --user NAME --password-file FILE",
            ))),
            404 => Err(Once::Never(error(
                said(),
                "this is no Prometheus: give the path before /api/v1 too, as http://HOST/prometheus",
            ))),
            422 => Err(Once::TooMuch(error(said(), "ask for a shorter --since"))),
            429 | 500.. => Err(Once::Later(error(said(), "try again later"))),
            _ => Err(Once::Never(error(said(), "see what the server says"))),
        }
    }
}

enum Once {
    Later(ServerError),
    TooMuch(ServerError),
    Never(ServerError),
}

fn roots(pem: &[u8]) -> Result<RootCerts, ServerError> {
    let certificates = parse_pem(pem).filter_map(|item| match item {
        Ok(PemItem::Certificate(certificate)) => Some(Ok(certificate)),
        Ok(_) => None,
        Err(error) => Some(Err(error)),
    });
    match certificates.collect::<Result<Vec<_>, _>>() {
        Ok(all) if !all.is_empty() => Ok(RootCerts::Specific(Arc::new(all))),
        _ => {
            let help = "give a file with certificates in PEM, as the cluster's ca.crt";
            Err(ServerError::option("--ca-file", "it holds no certificate", help))
        }
    }
}
