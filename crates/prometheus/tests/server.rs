//! What is asked of a server, and what becomes of its refusals.

use std::io::{BufRead, BufReader, Write};
use std::net::TcpListener;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use reveille_place::InputError;
use reveille_prometheus::{Access, Selector, Server, ServerError, Span};

static GOES_ON: AtomicBool = AtomicBool::new(false);
const SPAN: Span = Span { until_s: 1_000_000, length_s: 7200, step_s: None };
const SERIES: &str = r#"{"status":"success","data":[
    {"__name__":"container_cpu_usage_seconds_total","namespace":"shop","pod":"web-0","container":"app","id":"/a"},
    {"__name__":"container_cpu_usage_seconds_total","namespace":"shop","pod":"web-0","container":"app","id":"/b"}]}"#;

/// The first line and the headers of a request.
type Asked = Arc<Mutex<Vec<String>>>;

/// A server that gives these answers one after the other, and its URL.
fn server(answers: Vec<(u16, String)>) -> (String, Asked) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("http://{}/prefix/", listener.local_addr().unwrap());
    let asked = Asked::default();
    let seen = Arc::clone(&asked);
    std::thread::spawn(move || {
        for (status, body) in answers {
            let (mut stream, _) = listener.accept().unwrap();
            let lines = BufReader::new(stream.try_clone().unwrap()).lines();
            let lines: Vec<String> =
                lines.map_while(Result::ok).take_while(|line| !line.is_empty()).collect();
            seen.lock().unwrap().push(lines.join("\n"));
            let length = body.len();
            write!(
                stream,
                "HTTP/1.1 {status} X\r\nContent-Length: {length}\r\nConnection: close\r\n\r\n{body}"
            )
            .unwrap();
        }
    });
    (url, asked)
}

fn readings(from_s: u64, until_s: u64) -> String {
    let values: Vec<String> = (from_s / 30 + 1..=until_s / 30)
        .map(|n| format!("[{}, \"{}\"]", 30 * n, n as f64 * 3.0))
        .collect();
    let metric = r#"{"__name__":"container_cpu_usage_seconds_total","container":"app"}"#;
    format!(
        r#"{{"status":"success","data":{{"resultType":"matrix","result":[{{"metric":{metric},"values":[{}]}}]}}}}"#,
        values.join(",")
    )
}

fn access(url: String) -> Access {
    Access { url, ..Access::default() }
}

#[test]
fn a_question_is_repeated_and_made_smaller() {
    let refused = (422, r#"{"status":"error","error":"too many samples"}"#.to_owned());
    let (url, asked) = server(vec![
        (503, String::new()),
        (200, SERIES.into()),
        refused,
        (200, readings(992_800, 996_400)),
        (200, readings(996_400, 1_000_000)),
    ]);
    let mut access = access(url);
    access.headers.push(("X-Scope-OrgID".into(), "shop".into()));
    let server = Server::new(access, &GOES_ON).unwrap();
    let found = server.containers(&Selector::default(), SPAN).unwrap();
    assert_eq!(found.len(), 1, "a restarted container is one");
    assert_eq!(found[0].name(), "shop/web-0/app");
    let usage = server.recording(&found[0], SPAN).unwrap();
    assert!((usage.mean_cpus() - 0.1).abs() < 1e-6, "{}", usage.mean_cpus());
    let asked = asked.lock().unwrap();
    assert!(asked[0].starts_with("GET /prefix/api/v1/series?match%5B%5D="), "{}", asked[0]);
    assert!(asked.iter().all(|request| request.to_lowercase().contains("x-scope-orgid: shop")));
    assert!(asked[2].contains("%5B7200s%5D") && asked[2].contains("time=1000000"), "{}", asked[2]);
    assert!(asked[4].contains("%5B3600s%5D") && asked[4].contains("time=1000000"), "{}", asked[4]);
}

#[test]
fn refusals_say_what_to_do() {
    for (status, body, words, fix) in [
        (401, "", "HTTP 401", "--token-file"),
        (404, "<html>", "HTTP 404", "path before /api/v1"),
        (400, r#"{"error":"bad matcher"}"#, "HTTP 400: bad matcher", "see what the server says"),
        (200, "<html>", "cannot be read", "names a Prometheus"),
        (
            200,
            r#"{"status":"success","data":[]}"#,
            "no container_cpu_usage_seconds_total",
            "--select",
        ),
    ] {
        let (url, _) = server(vec![(status, body.into())]);
        let server = Server::new(access(url), &GOES_ON).unwrap();
        let error = server.containers(&Selector::default(), SPAN).unwrap_err();
        let help = miette::Diagnostic::help(&error).unwrap().to_string();
        assert!(error.to_string().contains(words) && help.contains(fix), "{error}: {help}");
    }
}

#[test]
fn what_is_no_url_is_refused() {
    for url in ["prometheus:9090", "ftp://a", "http://", "http://a b", "http://user:secret@host"] {
        let error = Server::new(access(url.into()), &GOES_ON).err().unwrap();
        assert!(
            matches!(error, ServerError::Input(InputError::Option { option: "--prometheus", .. })),
            "{url}"
        );
    }
    let no_ca = Access { ca: Some(b"none".to_vec()), ..access("https://host".into()) };
    assert!(Server::new(no_ca, &GOES_ON).err().unwrap().to_string().contains("--ca-file"));
}

#[test]
fn the_user_stops_a_question_that_is_not_answered() {
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let silent = format!("http://{}", silent.local_addr().unwrap());
    // One accepts and says nothing, one is asked again after a wait.
    for url in [silent, "http://127.0.0.1:1".into()] {
        let stop = AtomicBool::new(false);
        let error = std::thread::scope(|scope| {
            scope.spawn(|| {
                std::thread::sleep(Duration::from_millis(700));
                stop.store(true, Ordering::Relaxed);
            });
            let server = Server::new(access(url), &stop).unwrap();
            let asked = Instant::now();
            let error = server.containers(&Selector::default(), SPAN).unwrap_err();
            assert!(asked.elapsed() < Duration::from_millis(1500), "{:?}", asked.elapsed());
            error
        });
        assert!(matches!(error, ServerError::Interrupted), "{error}");
    }
    let (url, asked) = server(vec![(200, SERIES.into())]);
    let stopped = AtomicBool::new(true);
    let server = Server::new(access(url), &stopped).unwrap();
    let error = server.containers(&Selector::default(), SPAN).unwrap_err();
    assert!(matches!(error, ServerError::Interrupted), "{error}");
    assert!(asked.lock().unwrap().is_empty(), "nothing is asked");
}

#[test]
fn credentials_come_from_files() {
    let file = tempfile::NamedTempFile::new().unwrap();
    std::fs::write(file.path(), "open sesame\nsecond line\n").unwrap();
    let mut with = Access::default();
    with.bearer(file.path()).unwrap();
    with.basic("ali", file.path()).unwrap();
    let values: Vec<&str> = with.headers.iter().map(|(_, value)| value.as_str()).collect();
    assert_eq!(values, ["Bearer open sesame", "Basic YWxpOm9wZW4gc2VzYW1l"]);
    std::fs::write(file.path(), "\n").unwrap();
    assert!(with.bearer(file.path()).unwrap_err().to_string().contains("--token-file"));
}
