//! Connections with timeouts: a peer that does not complete its request, or does not read, is disconnected.

use std::cmp::Reverse;
use std::collections::HashMap;
use std::future::Future as _;
use std::io;
use std::net::{IpAddr, SocketAddr};
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

use super::framing::{Framing, Stop};
use skills_base::sync::MutexExt as _;

/// Timeouts and limits of connections.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Between requests: until the head of the next one is complete.
    pub head: Duration,
    /// Until the body of a request is complete.
    pub body: Duration,
    /// With a response to send: until the peer reads some of it.
    pub write: Duration,
    /// Maximum number of connections. At the limit, a new one replaces another one, or waits until one ends.
    pub connections: usize,
    /// Maximum number of connections per address. At the limit, a new one replaces another one of the same address, or is closed.
    /// If equal to `connections`, there is no separate limit.
    pub per_address: usize,
}

/// For this time, a connection without a request is treated like an authenticated one.
const FIRST_REQUEST_GRACE: Duration = Duration::from_secs(1);
/// How often a connection to replace is searched while a new one waits.
const EVICTION_INTERVAL: Duration = Duration::from_millis(250);
/// How often a warning about too many connections is logged.
const WARNING_INTERVAL: Duration = Duration::from_secs(60);

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            body: Duration::from_secs(30),
            write: Duration::from_secs(30),
            connections: 4096,
            per_address: 2048,
        }
    }
}

/// A peer and the state of its connection.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub address: SocketAddr,
    pub activity: Arc<Activity>,
}

/// The activity of a connection.
#[derive(Debug)]
pub(super) struct Activity {
    /// The rate-limit key of the peer: see [`rate_limit_key`].
    from: String,
    started: Instant,
    /// Requests in progress, until their responses are sent.
    busy: AtomicUsize,
    /// Whether the response of the current request is being sent.
    is_sending: AtomicBool,
    /// Whether the last request was authenticated, or needed no authentication because it is disabled.
    pub is_authenticated: AtomicBool,
    /// Number of requests received.
    requests: AtomicU64,
    /// Number of the request whose head is malformed, e.g. by a bare LF; 0 if there is none.
    refused: AtomicU64,
    /// Number of the request whose body is not complete; 0 if there is none.
    unfinished: AtomicU64,
    /// Whether part of its last request may be unread.
    pub owes: AtomicBool,
    /// Milliseconds from its start to the last time that part of a response was sent.
    moved_ms: AtomicU64,
    /// Fires when it is evicted.
    pub evicted: CancellationToken,
}

/// The order in which connections are replaced: the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
struct Rank {
    is_authenticated: bool,
    is_sending: bool,
}

impl Activity {
    fn begin(from: String) -> Self {
        Self {
            from,
            started: Instant::now(),
            busy: AtomicUsize::new(0),
            is_sending: AtomicBool::new(false),
            is_authenticated: AtomicBool::new(false),
            requests: AtomicU64::new(0),
            refused: AtomicU64::new(0),
            unfinished: AtomicU64::new(0),
            owes: AtomicBool::new(false),
            moved_ms: AtomicU64::new(0),
            evicted: CancellationToken::new(),
        }
    }

    /// Returns whether the head of the current request is malformed: the requests of a connection are sequential.
    pub fn has_malformed_head(&self) -> bool {
        let first = self.refused.load(Ordering::Relaxed);
        first > 0 && self.requests.load(Ordering::Relaxed) >= first
    }

    fn moved(&self) -> Instant {
        self.started + Duration::from_millis(self.moved_ms.load(Ordering::Relaxed))
    }

    fn move_on(&self) {
        let since = u64::try_from(self.started.elapsed().as_millis()).unwrap_or(u64::MAX);
        self.moved_ms.store(since, Ordering::Relaxed);
    }

    /// Returns how early the connection is replaced; `None` while a complete request is processed.
    fn rank(&self) -> Option<Rank> {
        let requests = self.requests.load(Ordering::Relaxed);
        let is_busy = self.busy.load(Ordering::Relaxed) > 0;
        let is_sending = is_busy && self.is_sending.load(Ordering::Relaxed);
        let is_processing = is_busy && !is_sending && self.unfinished.load(Ordering::Relaxed) != requests;
        let is_young = requests == 0 && self.started.elapsed() < FIRST_REQUEST_GRACE;
        let is_authenticated = is_young || self.is_authenticated.load(Ordering::Relaxed);
        (!is_processing && !self.evicted.is_cancelled()).then_some(Rank { is_authenticated, is_sending })
    }
}

/// All open connections.
#[derive(Debug, Default)]
struct Connections(Mutex<HashMap<u64, Arc<Activity>>>);

impl Connections {
    fn with<T>(&self, change: impl FnOnce(&mut HashMap<u64, Arc<Activity>>) -> T) -> T {
        change(&mut self.0.locked())
    }

    /// Closes one of the matching connections: of those of the least rank, the least recently used of the address with
    /// the most. Returns whether there was one.
    fn evict_one(&self, of: impl Fn(&Activity) -> bool) -> bool {
        self.with(|all| {
            let all = all.values().filter(|one| of(one));
            let ranked: Vec<_> = all.filter_map(|one| Some((one.rank()?, one))).collect();
            let Some(least) = ranked.iter().map(|(rank, _)| *rank).min() else { return false };
            let least: Vec<_> = ranked.iter().filter(|(rank, _)| *rank == least).collect();
            let mut counts: HashMap<&str, usize> = HashMap::new();
            for (_, one) in &least {
                *counts.entry(&one.from).or_default() += 1;
            }
            let chosen = least.iter().min_by_key(|(_, one)| (Reverse(counts.get(&*one.from)), one.moved()));
            chosen.inspect(|(_, one)| one.evicted.cancel()).is_some()
        })
    }

    /// Returns whether a further connection from this address is allowed: within the limit, or by evicting another one.
    fn admits(&self, from: &str, limit: usize) -> bool {
        let open = |one: &Activity| one.from == from && !one.evicted.is_cancelled();
        let count = self.with(|all| all.values().filter(|one| open(one)).count());
        count < limit || self.evict_one(open)
    }
}

/// Returns the rate-limit key of an unauthenticated caller: its address, or the network assigned to one customer (RFC
/// 6177).
pub(super) fn rate_limit_key(address: IpAddr) -> String {
    match address.to_canonical() {
        IpAddr::V4(address) => format!("peer:{address}"),
        IpAddr::V6(address) => {
            let [a, b, c, d, ..] = address.segments();
            format!("peer:{a:x}:{b:x}:{c:x}:{d:x}::/64")
        }
    }
}

impl Connected<IncomingStream<'_, Acceptor>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Acceptor>) -> Self {
        Self { address: *stream.remote_addr(), activity: Arc::clone(&stream.io().activity) }
    }
}

/// Counts a request of a peer until it is dropped, when the response is sent.
pub(super) struct Busy(Arc<Activity>);

impl Busy {
    pub fn with(peer: &Peer) -> Self {
        peer.activity.is_sending.store(false, Ordering::Relaxed);
        peer.activity.is_authenticated.store(false, Ordering::Relaxed);
        peer.activity.requests.fetch_add(1, Ordering::Relaxed);
        peer.activity.busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&peer.activity))
    }

    /// The request is processed; its response is being sent.
    pub fn begin_response(&self) {
        self.0.is_sending.store(true, Ordering::Relaxed);
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.move_on();
        self.0.busy.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts connections and enforces their limits.
pub(super) struct Acceptor {
    listener: TcpListener,
    places: Arc<Semaphore>,
    connections: Arc<Connections>,
    accepted: u64,
    warned: Option<Instant>,
    patience: Timeouts,
}

impl Acceptor {
    pub fn new(listener: TcpListener, patience: Timeouts) -> Self {
        Self {
            listener,
            places: Arc::new(Semaphore::new(patience.connections)),
            connections: Arc::default(),
            accepted: 0,
            warned: None,
            patience,
        }
    }

    /// Logs that there are too many connections, at most once per interval.
    fn warn(&mut self, message: impl Fn(&Timeouts) -> String) {
        if self.warned.is_none_or(|warned| warned.elapsed() >= WARNING_INTERVAL) {
            self.warned = Some(Instant::now());
            tracing::warn!("{}", message(&self.patience));
        }
    }

    /// Returns a permit for a further connection, evicting another one if necessary.
    async fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        if let Ok(place) = Arc::clone(&self.places).try_acquire_owned() {
            return Some(place);
        }
        self.warn(|limits| {
            let limit = limits.connections;
            format!("all {limit} connections are in use; closing existing ones to accept new ones (--max-connections)")
        });
        loop {
            self.connections.evict_one(|_| true);
            let place = Arc::clone(&self.places).acquire_owned();
            // The semaphore is never closed.
            if let Ok(place) = tokio::time::timeout(EVICTION_INTERVAL, place).await {
                return place.ok();
            }
        }
    }
}

impl Listener for Acceptor {
    type Io = Line;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Line, SocketAddr) {
        let (stream, address, from) = loop {
            let (stream, address) = Listener::accept(&mut self.listener).await;
            let from = rate_limit_key(address.ip());
            let is_unlimited = self.patience.per_address >= self.patience.connections;
            if is_unlimited || self.connections.admits(&from, self.patience.per_address) {
                break (stream, address, from);
            }
            self.warn(|limits| {
                let limit = limits.per_address;
                format!("{address} already has {limit} busy connections; further ones are closed (--max-connections-per-address)")
            });
        };
        let place = self.place().await;
        // Small responses must not wait for more data; if the peer is gone, the first read fails.
        let _ = stream.set_nodelay(true);
        self.accepted += 1;
        let seat = ConnectionSlot::new(self.accepted, from, &self.connections, place);
        (Line::new(stream, self.patience, seat), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A slot among the connections, released on drop.
struct ConnectionSlot {
    number: u64,
    activity: Arc<Activity>,
    connections: Arc<Connections>,
    _place: Option<OwnedSemaphorePermit>,
}

impl ConnectionSlot {
    fn new(
        number: u64,
        from: String,
        connections: &Arc<Connections>,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        let activity = Arc::new(Activity::begin(from));
        connections.with(|all| all.insert(number, Arc::clone(&activity)));
        Self { number, activity, connections: Arc::clone(connections), _place: place }
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        self.connections.with(|all| all.remove(&self.number));
    }
}

/// A connection with timeouts for reads and writes.
pub(super) struct Line {
    stream: TcpStream,
    patience: Timeouts,
    activity: Arc<Activity>,
    framing: Framing,
    evicted: Pin<Box<WaitForCancellationFutureOwned>>,
    /// Drains what the peer still sends.
    lingering: Option<DrainLimits>,
    /// Fires after the idle timeout; reset only when it fires.
    alarm: Pin<Box<Sleep>>,
    /// Fires when the peer has read nothing of a response for too long.
    stuck: Option<Pin<Box<Sleep>>>,
    _seat: ConnectionSlot,
}

impl Line {
    fn new(stream: TcpStream, patience: Timeouts, seat: ConnectionSlot) -> Self {
        let activity = Arc::clone(&seat.activity);
        Self {
            stream,
            patience,
            framing: Framing::default(),
            evicted: Box::pin(activity.evicted.clone().cancelled_owned()),
            alarm: Box::pin(tokio::time::sleep_until(activity.started + patience.head)),
            activity,
            lingering: None,
            stuck: None,
            _seat: seat,
        }
    }

    /// Returns whether the idle timeout has expired. While a request is in progress its handler enforces the timeouts.
    fn idle_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let end = self.activity.moved() + self.patience.head;
            let now = Instant::now();
            if self.activity.busy.load(Ordering::Relaxed) > 0 {
                self.alarm.as_mut().reset(now + self.patience.head);
            } else if end > now {
                self.alarm.as_mut().reset(end);
            } else {
                return true;
            }
        }
        false
    }

    fn wrote<T>(&mut self, cx: &mut Context<'_>, polled: Poll<io::Result<T>>) -> Poll<io::Result<T>> {
        if self.evicted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Err(timeout_error("replaced by another connection")));
        }
        if polled.is_ready() {
            self.stuck = None;
            self.activity.move_on();
            return polled;
        }
        let wait = self.patience.write;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
        match stuck.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(timeout_error("the peer does not read"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// Limits for draining a request that was rejected before it was complete. A connection that is closed with unread
/// bytes is reset, which can lose the response in transit (<https://www.rfc-editor.org/rfc/rfc9112#section-9.6-7>).
struct DrainLimits {
    /// The overall deadline.
    end: Instant,
    /// Fires at the deadline, or earlier if nothing arrives for some time.
    alarm: Pin<Box<Sleep>>,
    left: usize,
}

/// Maximum total time, if the request was authenticated.
const LINGER: Duration = Duration::from_secs(30);
/// Maximum total time otherwise.
const LINGER_UNAUTHENTICATED: Duration = Duration::from_secs(3);
/// Maximum time without incoming data.
const LINGER_QUIET: Duration = Duration::from_secs(2);
/// Maximum number of bytes drained.
const LINGER_BYTES: usize = 64 << 20;

impl DrainLimits {
    fn begin(is_authenticated: bool) -> Self {
        let now = Instant::now();
        Self {
            end: now + if is_authenticated { LINGER } else { LINGER_UNAUTHENTICATED },
            alarm: Box::pin(tokio::time::sleep_until(now + LINGER_QUIET)),
            left: LINGER_BYTES,
        }
    }

    /// Ready when the peer has closed the connection, or a limit is reached.
    fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 16 << 10];
        // A limited amount at a time: a fast sender must not starve others.
        for _ in 0..16 {
            let mut buffer = ReadBuf::new(&mut scratch);
            match Pin::new(&mut *stream).poll_read(cx, &mut buffer) {
                Poll::Ready(Ok(())) if !buffer.filled().is_empty() && self.left > 0 => {
                    self.left = self.left.saturating_sub(buffer.filled().len());
                    let quiet = Instant::now() + LINGER_QUIET;
                    self.alarm.as_mut().reset(quiet.min(self.end));
                }
                Poll::Ready(_) => return Poll::Ready(()),
                Poll::Pending => return self.alarm.as_mut().poll(cx),
            }
        }
        if self.alarm.as_mut().poll(cx).is_ready() {
            return Poll::Ready(());
        }
        cx.waker().wake_by_ref();
        Poll::Pending
    }
}

fn timeout_error(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let line = &mut *self;
        if line.evicted.as_mut().poll(cx).is_ready() || line.idle_too_long(cx) {
            return Poll::Ready(Err(timeout_error("incomplete request")));
        }
        if line.framing.stop.is_none() {
            let filled = buffer.filled().len();
            let read = Pin::new(&mut line.stream).poll_read(cx, buffer);
            let received = &buffer.filled()[filled..];
            if !matches!(read, Poll::Ready(Ok(()))) || received.is_empty() {
                return read;
            }
            let checked = line.framing.check(received);
            line.activity.refused.store(line.framing.refused.unwrap_or(0), Ordering::Relaxed);
            line.activity.unfinished.store(line.framing.unfinished(), Ordering::Relaxed);
            buffer.set_filled(filled + checked);
            if checked > 0 {
                return read;
            }
        }
        let message = match line.framing.stop {
            // The response to the head closes the connection.
            None | Some(Stop::RefusedHead) => return Poll::Pending,
            Some(Stop::MalformedBody) => "a line of the body is malformed",
            Some(Stop::LargeHead) => {
                // The connection ends here, so a response that the peer does not read is lost.
                let _ = Pin::new(&mut line.stream).poll_write(cx, HEAD_TOO_LARGE);
                "the request header is too large"
            }
        };
        Poll::Ready(Err(io::Error::new(io::ErrorKind::InvalidData, message)))
    }
}

/// Response to a head beyond the limit.
const HEAD_TOO_LARGE: &[u8] =
    b"HTTP/1.1 431 Request Header Fields Too Large\r\ncontent-length: 0\r\nconnection: close\r\n\r\n";

impl AsyncWrite for Line {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write(cx, bytes);
        self.wrote(cx, polled)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        parts: &[io::IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let polled = Pin::new(&mut self.stream).poll_write_vectored(cx, parts);
        self.wrote(cx, polled)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<io::Result<()>> {
        let line = &mut *self;
        if line.evicted.as_mut().poll(cx).is_ready() {
            return Poll::Ready(Ok(()));
        }
        if line.lingering.is_none() {
            let is_unread = line.framing.stop.is_some() || line.activity.owes.load(Ordering::Relaxed);
            match Pin::new(&mut line.stream).poll_shutdown(cx) {
                Poll::Ready(Ok(())) if is_unread => {}
                other => return other,
            }
        }
        let is_authenticated = line.activity.is_authenticated.load(Ordering::Relaxed);
        let lingering = line.lingering.get_or_insert_with(|| DrainLimits::begin(is_authenticated));
        lingering.poll(&mut line.stream, cx).map(Ok)
    }
}
