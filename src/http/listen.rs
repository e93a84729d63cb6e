//! Connections with an end: a peer that sends no whole request, or takes no answer, is not waited for.

use std::future::Future as _;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::task::{Context, Poll};
use std::time::Duration;

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Instant, Sleep};

/// How long peers are waited for.
#[derive(Debug, Clone, Copy)]
pub struct Patience {
    /// Without a request under way: for the head of the next one, whole.
    pub head: Duration,
    /// For a request's body, whole.
    pub body: Duration,
    /// With an answer to send: for the peer to take some of it.
    pub write: Duration,
    /// Connections at once; others wait to be accepted.
    pub connections: usize,
}

impl Default for Patience {
    fn default() -> Self {
        Self {
            head: Duration::from_secs(60),
            body: Duration::from_secs(30),
            write: Duration::from_secs(30),
            connections: 4096,
        }
    }
}

/// A peer, and how many of its requests are being answered.
#[derive(Debug, Clone)]
pub(super) struct Peer {
    pub address: SocketAddr,
    pub busy: Arc<AtomicUsize>,
    /// Whether some of its last request may not have been read.
    pub owes: Arc<AtomicBool>,
}

impl Connected<IncomingStream<'_, Entrance>> for Peer {
    fn connect_info(stream: IncomingStream<'_, Entrance>) -> Self {
        let line = stream.io();
        Self { address: *stream.remote_addr(), busy: Arc::clone(&line.busy), owes: Arc::clone(&line.owes) }
    }
}

/// Counts a request of a peer until it is dropped.
pub(super) struct Busy(Arc<AtomicUsize>);

impl Busy {
    pub fn with(peer: &Peer) -> Self {
        peer.busy.fetch_add(1, Ordering::Relaxed);
        Self(Arc::clone(&peer.busy))
    }
}

impl Drop for Busy {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// Accepts connections and sets their ends.
pub(super) struct Entrance {
    listener: TcpListener,
    places: Arc<Semaphore>,
    patience: Patience,
}

impl Entrance {
    pub fn new(listener: TcpListener, patience: Patience) -> Self {
        Self { listener, places: Arc::new(Semaphore::new(patience.connections)), patience }
    }
}

impl Listener for Entrance {
    type Io = Line;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Line, SocketAddr) {
        // The semaphore is never closed: without a place there is nothing to do but wait.
        let place = Arc::clone(&self.places).acquire_owned().await.ok();
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Small answers must not wait for more to come; a peer that is gone shows at the first read.
        let _ = stream.set_nodelay(true);
        (Line::new(stream, self.patience, place), address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

/// A connection whose reads and writes come to an end.
pub(super) struct Line {
    stream: TcpStream,
    patience: Patience,
    busy: Arc<AtomicUsize>,
    owes: Arc<AtomicBool>,
    /// What the peer still sends, read for nothing.
    lingering: Option<Lingering>,
    /// Fires when nothing moved for as long as the peer is waited for; set anew only when it fires.
    alarm: Pin<Box<Sleep>>,
    /// When the last answer was sent, or the connection began.
    moved: Instant,
    /// Since when the peer has taken nothing of an answer.
    stuck: Option<Pin<Box<Sleep>>>,
    _place: Option<OwnedSemaphorePermit>,
}

impl Line {
    fn new(stream: TcpStream, patience: Patience, place: Option<OwnedSemaphorePermit>) -> Self {
        let now = Instant::now();
        Self {
            stream,
            patience,
            busy: Arc::default(),
            owes: Arc::default(),
            lingering: None,
            alarm: Box::pin(tokio::time::sleep_until(now + patience.head)),
            moved: now,
            stuck: None,
            _place: place,
        }
    }

    /// Whether the peer was waited for long enough. While a request is under way its handler sets the times.
    fn idle_too_long(&mut self, cx: &mut Context<'_>) -> bool {
        while self.alarm.as_mut().poll(cx).is_ready() {
            let end = self.moved + self.patience.head;
            let now = Instant::now();
            if self.busy.load(Ordering::Relaxed) > 0 {
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
        if polled.is_ready() {
            self.stuck = None;
            self.moved = Instant::now();
            return polled;
        }
        let wait = self.patience.write;
        let stuck = self.stuck.get_or_insert_with(|| Box::pin(tokio::time::sleep(wait)));
        match stuck.as_mut().poll(cx) {
            Poll::Ready(()) => Poll::Ready(Err(late("the peer takes nothing"))),
            Poll::Pending => Poll::Pending,
        }
    }
}

/// How long, and how much, is read of a request that was refused before its end. A connection that is closed on
/// unread bytes is reset, and with that the answer is lost on its way
/// (<https://www.rfc-editor.org/rfc/rfc9112#section-9.6-7>).
struct Lingering {
    /// The very end.
    end: Instant,
    /// Fires at the end, or before it when nothing came for a while.
    alarm: Pin<Box<Sleep>>,
    left: usize,
}

/// Longest time in all.
const LINGER: Duration = Duration::from_secs(30);
/// Longest time without anything that comes.
const LINGER_QUIET: Duration = Duration::from_secs(2);
/// Bytes that are read for nothing, at most.
const LINGER_BYTES: usize = 64 << 20;

impl Lingering {
    fn begin() -> Self {
        let now = Instant::now();
        Self {
            end: now + LINGER,
            alarm: Box::pin(tokio::time::sleep_until(now + LINGER_QUIET)),
            left: LINGER_BYTES,
        }
    }

    /// Ready when the peer has ended, or was listened to for long enough.
    fn poll(&mut self, stream: &mut TcpStream, cx: &mut Context<'_>) -> Poll<()> {
        let mut scratch = [0; 16 << 10];
        // Some at a time: one who sends fast must not keep others from their turn.
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

fn late(why: &str) -> io::Error {
    io::Error::new(io::ErrorKind::TimedOut, why)
}

impl AsyncRead for Line {
    fn poll_read(
        mut self: Pin<&mut Self>,
        cx: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        let read = Pin::new(&mut self.stream).poll_read(cx, buffer);
        if self.idle_too_long(cx) {
            return Poll::Ready(Err(late("no whole request came")));
        }
        read
    }
}

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
        if line.lingering.is_none() {
            match Pin::new(&mut line.stream).poll_shutdown(cx) {
                Poll::Ready(Ok(())) if line.owes.load(Ordering::Relaxed) => {}
                other => return other,
            }
        }
        let lingering = line.lingering.get_or_insert_with(Lingering::begin);
        lingering.poll(&mut line.stream, cx).map(Ok)
    }
}
