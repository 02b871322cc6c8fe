//! git's smart protocol over HTTP, through ureq: the system's certificates,
//! the user's proxies, and an end to every wait.

use std::cell::Cell;
use std::io::{self, Read, Write};
use std::sync::{Arc, Mutex, Once};

use git2::transport::{Service, SmartSubtransport, SmartSubtransportStream, Transport};
use ureq::ResponseExt;
use ureq::tls::{RootCerts, TlsConfig};

use super::import::Limits;

thread_local! {
    /// What the fetch that runs on this thread allows; libgit2 makes the
    /// transport on the thread that fetches and takes no arguments for it.
    static LIMITS: Cell<Limits> = const { Cell::new(Limits::DEFAULT) };
}

/// Makes HTTP and HTTPS known to libgit2, for fetches on this thread.
pub(super) fn prepare(limits: Limits) {
    static REGISTERED: Once = Once::new();
    LIMITS.set(limits);
    REGISTERED.call_once(|| {
        for scheme in ["http", "https"] {
            // SAFETY: libgit2's list of transports must not change while
            // another thread makes one. This module makes none before it has
            // passed this `Once`, and no other module uses git2.
            #[allow(unsafe_code)]
            let registered = unsafe {
                git2::transport::register(scheme, |remote| {
                    Transport::smart(remote, true, Http::new(LIMITS.get()))
                })
            };
            // It fails for a scheme that is registered already, and these
            // never are: any other failure shows when a URL is opened.
            drop(registered);
        }
    });
}

struct Http {
    agent: ureq::Agent,
    /// Where the repository is, once a redirection has told.
    base: Arc<Mutex<Option<String>>>,
}

impl Http {
    fn new(limits: Limits) -> Self {
        let tls = TlsConfig::builder().root_certs(RootCerts::PlatformVerifier).build();
        let agent = ureq::Agent::config_builder()
            .tls_config(tls)
            .http_status_as_error(false)
            // Servers look at the first word to know a git client.
            .user_agent("git/2 (mlx-overlay)")
            .timeout_resolve(Some(limits.connect))
            .timeout_connect(Some(limits.connect))
            .timeout_recv_response(Some(limits.silence))
            .timeout_per_read(Some(limits.silence))
            .timeout_per_write(Some(limits.silence))
            .timeout_global(Some(limits.whole))
            .build()
            .into();
        Self { agent, base: Arc::default() }
    }
}

impl SmartSubtransport for Http {
    fn action(
        &self,
        url: &str,
        service: Service,
    ) -> Result<Box<dyn SmartSubtransportStream>, git2::Error> {
        let mut base = self.base.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
        let at = base.as_deref().unwrap_or(url).trim_end_matches('/').to_owned();
        match service {
            Service::UploadPackLs => {
                let ask = format!("{at}/info/refs?service=git-upload-pack");
                let response = self.agent.get(&ask).call().map_err(|e| fault(&e))?;
                let response = checked(response, "advertisement")?;
                let found = response.get_uri().to_string();
                if let Some((moved, _)) = found.split_once("/info/refs") {
                    *base = Some(moved.to_owned());
                }
                let mut refs = Vec::new();
                response
                    .into_body()
                    .into_reader()
                    .read_to_end(&mut refs)
                    .map_err(|e| git2::Error::from_str(&e.to_string()))?;
                if is_shallow(&refs) {
                    return Err(git2::Error::from_str(SHALLOW));
                }
                Ok(Box::new(Answer(Box::new(io::Cursor::new(refs)))))
            }
            Service::UploadPack => Ok(Box::new(Exchange {
                agent: self.agent.clone(),
                url: format!("{at}/git-upload-pack"),
                request: Vec::new(),
                answer: None,
            })),
            Service::ReceivePackLs | Service::ReceivePack => {
                Err(git2::Error::from_str("nothing is ever pushed"))
            }
        }
    }

    fn close(&self) -> Result<(), git2::Error> {
        Ok(())
    }
}

/// What is said of a server of a shallow clone.
pub(super) const SHALLOW: &str = "the repository there is a shallow clone, which is fetched from as a folder \
                       alone; `git fetch --unshallow` there makes it whole";

/// Whether a server says where its history is cut off: libgit2 takes that line
/// for a broken protocol.
fn is_shallow(mut refs: &[u8]) -> bool {
    // Four digits say how long a line is, themselves too; `0000` stands alone.
    while let Some((digits, rest)) = refs.split_at_checked(4) {
        let length =
            std::str::from_utf8(digits).ok().and_then(|d| usize::from_str_radix(d, 16).ok());
        let Some(length) = length else { return false };
        let Some((line, after)) = rest.split_at_checked(length.saturating_sub(4)) else {
            return false;
        };
        if line.starts_with(b"shallow ") {
            return true;
        }
        refs = after;
    }
    false
}

/// An answer that is read as it comes.
struct Answer(Box<dyn Read + Send>);

impl Read for Answer {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        self.0.read(into)
    }
}

impl Write for Answer {
    fn write(&mut self, _: &[u8]) -> io::Result<usize> {
        Err(io::Error::other("an answer takes no more"))
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// One request and its answer: sent when the answer is first read.
struct Exchange {
    agent: ureq::Agent,
    url: String,
    request: Vec<u8>,
    answer: Option<Box<dyn Read + Send>>,
}

impl Write for Exchange {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.request.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Read for Exchange {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        if self.answer.is_none() {
            let response = self
                .agent
                .post(&self.url)
                .content_type("application/x-git-upload-pack-request")
                .header("Accept", "application/x-git-upload-pack-result")
                .send(&self.request[..])
                .map_err(|e| io::Error::other(fault(&e).message().to_owned()))?;
            let response = checked(response, "result")
                .map_err(|e| io::Error::other(e.message().to_owned()))?;
            self.answer = Some(heard(response.into_body().into_reader())?);
        }
        match &mut self.answer {
            Some(answer) => answer.read(into),
            None => Ok(0),
        }
    }
}

/// The longest word of a server that is passed on.
const LONGEST_WORD: u64 = 1000;

/// The answer, unless it is the server's word that it will not. libgit2 would
/// take that for a broken protocol.
fn heard(mut answer: impl Read + Send + 'static) -> io::Result<Box<dyn Read + Send>> {
    const REFUSAL: &[u8] = b"ERR ";
    let mut head = Vec::new();
    answer.by_ref().take(8).read_to_end(&mut head)?;
    if head.get(4..) == Some(REFUSAL) {
        let digits = std::str::from_utf8(&head[..4]).ok();
        let length = digits.and_then(|digits| u64::from_str_radix(digits, 16).ok());
        let rest = length.unwrap_or_default().saturating_sub(head.len() as u64);
        let mut word = Vec::new();
        answer.take(rest.min(LONGEST_WORD)).read_to_end(&mut word)?;
        let word = String::from_utf8_lossy(&word);
        return Err(io::Error::other(format!("the server says: {word}")));
    }
    Ok(Box::new(io::Cursor::new(head).chain(answer)))
}

type Response = ureq::http::Response<ureq::Body>;

/// Refuses what is no answer of a git server.
fn checked(response: Response, kind: &str) -> Result<Response, git2::Error> {
    let status = response.status();
    if !status.is_success() {
        return Err(git2::Error::from_str(&match status.as_u16() {
            401 | 403 | 407 => {
                format!("the server answers {status}: it wants a login, and none is ever sent")
            }
            404 => format!("the server answers {status}: there is no repository"),
            _ => format!("the server answers {status}"),
        }));
    }
    let wanted = format!("application/x-git-upload-pack-{kind}");
    let found = response.headers().get("content-type").and_then(|v| v.to_str().ok());
    if found != Some(wanted.as_str()) {
        let found = found.unwrap_or("nothing that names itself");
        return Err(git2::Error::from_str(&format!(
            "the server does not speak git's smart protocol: it sent {found}"
        )));
    }
    Ok(response)
}

fn fault(error: &ureq::Error) -> git2::Error {
    git2::Error::from_str(&error.to_string())
}
