//! A proxy between the clients of a host and their metadata server, which can delay,
//! stall, cut, and lose the replies to what was committed.

use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicU8, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

/// Where the server listens.
#[derive(Debug, Clone)]
pub(super) enum Upstream {
    Port(u16),
    Socket(PathBuf),
}

/// What happens to bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[repr(u8)]
pub(super) enum Weather {
    Clear,
    /// Each piece comes late.
    Slow,
    /// Nothing comes, in either direction, until it clears up.
    Still,
    /// What clients send arrives. What is answered is lost, and with it the connection.
    Deaf,
}

const LATE: Duration = Duration::from_millis(60);
const LOOK: Duration = Duration::from_millis(5);

/// The proxy of one host. Connections end with it.
#[derive(Debug)]
pub(super) struct Proxy {
    port: u16,
    sky: Arc<Sky>,
}

#[derive(Debug)]
struct Sky {
    weather: AtomicU8,
    is_over: AtomicBool,
    /// Both ends of each connection, to be cut.
    open: Mutex<Vec<Arc<Link>>>,
}

#[derive(Debug)]
struct Link {
    client: TcpStream,
    server: Server,
    /// Something was lost: what comes after it makes no sense to the client.
    is_torn: AtomicBool,
}

#[derive(Debug)]
enum Server {
    Tcp(TcpStream),
    Unix(UnixStream),
}

impl Proxy {
    pub(super) fn start(upstream: Upstream) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let port = listener.local_addr().expect("a port").port();
        let sky = Arc::new(Sky {
            weather: AtomicU8::new(Weather::Clear as u8),
            is_over: AtomicBool::new(false),
            open: Mutex::default(),
        });
        let above = Arc::clone(&sky);
        thread::spawn(move || {
            for client in listener.incoming() {
                if above.is_over.load(Ordering::SeqCst) {
                    return;
                }
                // A client whose server is not there is hung up on.
                let (Ok(client), Ok(server)) = (client, connected(&upstream)) else { continue };
                above.join(client, server);
            }
        });
        Self { port, sky }
    }

    pub(super) fn port(&self) -> u16 {
        self.port
    }

    pub(super) fn set(&self, weather: Weather) {
        self.sky.weather.store(weather as u8, Ordering::SeqCst);
    }

    /// Ends every connection there is. New ones may be made.
    pub(super) fn cut(&self) {
        for link in self.sky.open.lock().expect("nobody panics with it").drain(..) {
            link.end();
        }
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.sky.is_over.store(true, Ordering::SeqCst);
        self.cut();
        // Wakes the thread that listens.
        let _ = TcpStream::connect(("127.0.0.1", self.port));
    }
}

fn connected(upstream: &Upstream) -> std::io::Result<Server> {
    match upstream {
        Upstream::Port(port) => {
            let stream = TcpStream::connect(("127.0.0.1", *port))?;
            stream.set_nodelay(true)?;
            Ok(Server::Tcp(stream))
        }
        Upstream::Socket(path) => UnixStream::connect(path).map(Server::Unix),
    }
}

impl Sky {
    fn is(&self, weather: Weather) -> bool {
        self.weather.load(Ordering::SeqCst) == weather as u8
    }

    fn join(self: &Arc<Self>, client: TcpStream, server: Server) {
        let _ = client.set_nodelay(true);
        let link = Arc::new(Link { client, server, is_torn: AtomicBool::new(false) });
        {
            let mut open = self.open.lock().expect("nobody panics with it");
            // Those that only this list still has are over.
            open.retain(|link| Arc::strong_count(link) > 1);
            open.push(Arc::clone(&link));
        }
        for is_reply in [false, true] {
            let (sky, link) = (Arc::clone(self), Arc::clone(&link));
            thread::spawn(move || {
                let _ = sky.carry(&link, is_reply);
                link.end();
            });
        }
    }

    fn carry(&self, link: &Link, is_reply: bool) -> std::io::Result<()> {
        let mut bytes = vec![0; 64 * 1024];
        loop {
            let length = if is_reply {
                link.server.read(&mut bytes)?
            } else {
                (&link.client).read(&mut bytes)?
            };
            if length == 0 {
                return Ok(());
            }
            while self.is(Weather::Still) && !self.is_over.load(Ordering::SeqCst) {
                thread::sleep(LOOK);
            }
            if self.is(Weather::Slow) {
                thread::sleep(LATE);
            }
            if is_reply {
                if self.is(Weather::Deaf) {
                    link.is_torn.store(true, Ordering::SeqCst);
                }
                if link.is_torn.load(Ordering::SeqCst) {
                    // The client waits, as for a server that is gone, until it clears up.
                    while self.is(Weather::Deaf) && !self.is_over.load(Ordering::SeqCst) {
                        thread::sleep(LOOK);
                    }
                    return Ok(());
                }
                (&link.client).write_all(&bytes[..length])?;
            } else {
                link.server.write_all(&bytes[..length])?;
            }
        }
    }
}

impl Link {
    fn end(&self) {
        let _ = self.client.shutdown(Shutdown::Both);
        let _ = match &self.server {
            Server::Tcp(stream) => stream.shutdown(Shutdown::Both),
            Server::Unix(stream) => stream.shutdown(Shutdown::Both),
        };
    }
}

impl Server {
    fn read(&self, bytes: &mut [u8]) -> std::io::Result<usize> {
        match self {
            Self::Tcp(stream) => Read::read(&mut { stream }, bytes),
            Self::Unix(stream) => Read::read(&mut { stream }, bytes),
        }
    }

    fn write_all(&self, bytes: &[u8]) -> std::io::Result<()> {
        match self {
            Self::Tcp(stream) => Write::write_all(&mut { stream }, bytes),
            Self::Unix(stream) => Write::write_all(&mut { stream }, bytes),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that answers each byte with the next one, and tells how many it had.
    fn echo() -> (Upstream, Arc<Mutex<Vec<u8>>>) {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
        let port = listener.local_addr().expect("a port").port();
        let heard = Arc::new(Mutex::new(Vec::new()));
        let all = Arc::clone(&heard);
        thread::spawn(move || {
            for stream in listener.incoming() {
                let (Ok(mut stream), all) = (stream, Arc::clone(&all)) else { return };
                thread::spawn(move || {
                    let mut byte = [0];
                    while stream.read_exact(&mut byte).is_ok() {
                        all.lock().expect("heard").push(byte[0]);
                        let _ = stream.write_all(&[byte[0] + 1]);
                    }
                });
            }
        });
        (Upstream::Port(port), heard)
    }

    fn client(proxy: &Proxy) -> TcpStream {
        let stream = TcpStream::connect(("127.0.0.1", proxy.port())).expect("connected");
        stream.set_read_timeout(Some(Duration::from_secs(20))).expect("set");
        stream
    }

    fn asked(stream: &mut TcpStream, byte: u8) -> Option<u8> {
        stream.write_all(&[byte]).ok()?;
        let mut answer = [0];
        stream.read_exact(&mut answer).ok().map(|()| answer[0])
    }

    #[test]
    fn bytes_go_both_ways_and_slowly_too() {
        let (upstream, _) = echo();
        let proxy = Proxy::start(upstream);
        let mut stream = client(&proxy);
        assert_eq!(asked(&mut stream, 1), Some(2));
        proxy.set(Weather::Slow);
        assert_eq!(asked(&mut stream, 5), Some(6));
    }

    #[test]
    fn what_is_still_arrives_when_it_clears_up() {
        let (upstream, heard) = echo();
        let proxy = Proxy::start(upstream);
        let mut stream = client(&proxy);
        proxy.set(Weather::Still);
        stream.write_all(&[7]).expect("sent");
        thread::sleep(Duration::from_millis(100));
        assert!(heard.lock().expect("heard").is_empty());
        proxy.set(Weather::Clear);
        let mut answer = [0];
        stream.read_exact(&mut answer).expect("answered");
        assert_eq!(answer, [8]);
    }

    #[test]
    fn what_was_sent_arrives_although_its_answer_is_lost_and_the_connection_with_it() {
        let (upstream, heard) = echo();
        let proxy = Proxy::start(upstream);
        let mut stream = client(&proxy);
        proxy.set(Weather::Deaf);
        stream.write_all(&[3]).expect("sent");
        while heard.lock().expect("heard").is_empty() {
            thread::sleep(LOOK);
        }
        // The answer is on its way when it clears up, and is lost anyway.
        thread::sleep(Duration::from_millis(100));
        proxy.set(Weather::Clear);
        let mut answer = [0];
        assert!(stream.read_exact(&mut answer).is_err(), "{answer:?}");
        assert_eq!(asked(&mut client(&proxy), 4), Some(5), "others are not concerned");
    }

    #[test]
    fn connections_that_are_cut_are_over_and_new_ones_can_be_made() {
        let (upstream, _) = echo();
        let proxy = Proxy::start(upstream);
        let mut stream = client(&proxy);
        assert_eq!(asked(&mut stream, 1), Some(2));
        proxy.cut();
        assert_eq!(asked(&mut stream, 1), None);
        assert_eq!(asked(&mut client(&proxy), 1), Some(2));
    }
}
