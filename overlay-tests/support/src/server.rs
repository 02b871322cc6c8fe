//! Servers on the loopback: a git server (`git http-backend` behind a few lines
//! of HTTP), and one that gives bytes by path. Made for tests: what goes wrong
//! in them is a panic.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::{Arc, Mutex};

/// What the server does wrong.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Fault {
    /// Nothing.
    None,
    /// Half the pack is sent, and then nothing.
    Stall,
    /// Half the pack is sent, and the connection closed.
    Cut,
    /// A page for people is sent.
    Page,
    /// The pack is refused, in two lines.
    Refuse,
    /// The first request is sent on to another path.
    Moved,
}

/// A git server; it ends with the process.
pub struct Server {
    /// Where it listens: `http://127.0.0.1:PORT`.
    pub url: String,
    /// The requests that came, as `METHOD path`.
    pub requests: Arc<Mutex<Vec<String>>>,
}

impl Server {
    /// Serves the repository at `root`/`name` as `http://…/name`.
    ///
    /// # Panics
    /// No port can be listened at.
    #[must_use]
    pub fn start(root: &Path, fault: Fault) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let requests = Arc::new(Mutex::new(Vec::new()));
        let (root, seen) = (root.to_path_buf(), requests.clone());
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                let (root, seen) = (root.clone(), seen.clone());
                std::thread::spawn(move || answer(stream.unwrap(), &root, fault, &seen));
            }
        });
        Self { url, requests }
    }
}

struct Request {
    method: String,
    path: String,
    query: String,
    headers: BTreeMap<String, String>,
    body: Vec<u8>,
}

fn answer(mut stream: TcpStream, root: &Path, fault: Fault, seen: &Mutex<Vec<String>>) {
    let Some(request) = read(&stream) else { return };
    seen.lock().unwrap().push(format!("{} {}", request.method, request.path));
    if fault == Fault::Page {
        let page = "HTTP/1.1 200 OK\r\nContent-Type: text/html\r\nContent-Length: 4\r\nConnection: close\r\n\r\nhome";
        stream.write_all(page.as_bytes()).unwrap();
        return;
    }
    if fault == Fault::Refuse && request.method == "POST" {
        let word = "ERR no pack for you\nask the owner\n";
        let head = "HTTP/1.1 200 OK\r\nContent-Type: application/x-git-upload-pack-result\r\n";
        let answer =
            format!("{head}Connection: close\r\n\r\n{:04x}{word}0008NAK\n", word.len() + 4);
        stream.write_all(answer.as_bytes()).unwrap();
        return;
    }
    let path = match request.path.strip_prefix("/moved") {
        Some(path) if fault == Fault::Moved => path.to_owned(),
        _ if fault == Fault::Moved => {
            let Request { path, query, .. } = &request;
            let to = format!(
                "HTTP/1.1 301 Moved\r\nLocation: /moved{path}?{query}\r\nContent-Length: 0\r\nConnection: close\r\n\r\n"
            );
            stream.write_all(to.as_bytes()).unwrap();
            return;
        }
        _ => request.path.clone(),
    };
    let (head, body) = backend(root, &path, &request);
    let status = head.lines().find_map(|l| l.strip_prefix("Status: ")).unwrap_or("200 OK");
    let rest: String = head
        .lines()
        .filter(|l| !l.is_empty() && !l.starts_with("Status: "))
        .map(|l| format!("{l}\r\n"))
        .collect();
    let length = body.len();
    let head =
        format!("HTTP/1.1 {status}\r\n{rest}Content-Length: {length}\r\nConnection: close\r\n\r\n");
    // A client may be killed in the middle.
    if stream.write_all(head.as_bytes()).is_err() {
        return;
    }
    let is_pack = request.method == "POST" && body.windows(4).any(|w| w == b"PACK");
    match fault {
        Fault::Stall | Fault::Cut if is_pack => {
            stream.write_all(&body[..length / 2]).unwrap();
            stream.flush().unwrap();
            if fault == Fault::Stall {
                // Until the other side gives up.
                let _ = stream.read(&mut [0]);
            }
        }
        _ => drop(stream.write_all(&body)),
    }
}

fn read(stream: &TcpStream) -> Option<Request> {
    let mut reader = BufReader::new(stream);
    let mut line = String::new();
    reader.read_line(&mut line).ok()?;
    let mut words = line.split_whitespace();
    let (method, target) = (words.next()?.to_owned(), words.next()?.to_owned());
    let (path, query) = target.split_once('?').unwrap_or((&target, ""));
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).ok()?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) => headers.insert(name.to_lowercase(), value.to_owned()),
            None => break,
        };
    }
    let length = headers.get("content-length").map_or(0, |l| l.parse().unwrap());
    let mut body = vec![0; length];
    reader.read_exact(&mut body).ok()?;
    Some(Request { method, path: path.into(), query: query.into(), headers, body })
}

fn backend(root: &Path, path: &str, request: &Request) -> (String, Vec<u8>) {
    let mut child = Command::new("git")
        .arg("http-backend")
        .env("GIT_CONFIG_GLOBAL", "/dev/null")
        .env("GIT_CONFIG_SYSTEM", "/dev/null")
        .env("GIT_PROJECT_ROOT", root)
        .env("GIT_HTTP_EXPORT_ALL", "1")
        .env("REQUEST_METHOD", &request.method)
        .env("PATH_INFO", path)
        .env("QUERY_STRING", &request.query)
        .env("CONTENT_TYPE", request.headers.get("content-type").map_or("", String::as_str))
        .env("CONTENT_LENGTH", request.body.len().to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .stderr(Stdio::null())
        .spawn()
        .unwrap();
    child.stdin.take().unwrap().write_all(&request.body).unwrap();
    let output = child.wait_with_output().unwrap().stdout;
    let end = output.windows(4).position(|w| w == b"\r\n\r\n").unwrap();
    (String::from_utf8_lossy(&output[..end]).into_owned(), output[end + 4..].to_vec())
}

/// What a path answers: taken in turn, the last one for ever.
type Answers = BTreeMap<String, Vec<Vec<u8>>>;

/// Serves bytes by path, as package registries do.
pub struct Files {
    /// Where it listens: `http://127.0.0.1:PORT`.
    pub url: String,
    answers: Arc<Mutex<Answers>>,
}

impl Files {
    /// A server that has nothing yet.
    ///
    /// # Panics
    /// No port can be listened at.
    #[must_use]
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let url = format!("http://{}", listener.local_addr().unwrap());
        let answers = Arc::new(Mutex::new(Answers::new()));
        let shared = answers.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming() {
                give(stream.unwrap(), &shared);
            }
        });
        Self { url, answers }
    }

    /// Puts another answer behind those of `path`.
    ///
    /// # Panics
    /// Another thread panicked at it.
    pub fn put(&self, path: &str, bytes: impl Into<Vec<u8>>) {
        self.answers.lock().unwrap().entry(path.into()).or_default().push(bytes.into());
    }

    /// Puts bytes behind the last answer of `path`.
    ///
    /// # Panics
    /// Another thread panicked at it.
    pub fn append(&self, path: &str, bytes: &[u8]) {
        let mut answers = self.answers.lock().unwrap();
        let several = answers.entry(path.into()).or_default();
        match several.last_mut() {
            Some(last) => last.extend_from_slice(bytes),
            None => several.push(bytes.to_vec()),
        }
    }
}

fn give(mut stream: TcpStream, answers: &Mutex<Answers>) {
    let Some(request) = read(&stream) else { return };
    let bytes = match answers.lock().unwrap().get_mut(&request.path) {
        Some(several) if several.len() > 1 => Some(several.remove(0)),
        Some(one) => one.first().cloned(),
        None => None,
    };
    let kind = if request.path.ends_with('/') { "text/html" } else { "application/octet-stream" };
    let (status, body) = match bytes {
        Some(bytes) => ("200 OK", bytes),
        None => ("404 Not Found", Vec::new()),
    };
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status}\r\nContent-Type: {kind}\r\nContent-Length: {length}\r\n\
         Connection: close\r\n\r\n"
    );
    // A client may go away once it has seen the head.
    let _ = stream.write_all(head.as_bytes()).and_then(|()| stream.write_all(&body));
}
