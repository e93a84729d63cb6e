//! Notifications of commits of other processes, by `LISTEN` and `NOTIFY` on a separate connection.
//!
//! A notification is sent after its commit, not within it, because transactions that notify are committed sequentially.
//! If one is lost with its process or connection, its events are found by polling: after each new connection, and once
//! a second while a caller waits.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio::time::{Instant, sleep_until};
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Minimum time between two announcements: each is a transaction, and readers look at most this often.
const MIN_ANNOUNCE_INTERVAL: Duration = Duration::from_millis(5);

/// Pauses between connection attempts.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// Listens until it is dropped.
pub(super) struct CommitListener {
    task: JoinHandle<()>,
    announce: Arc<Notify>,
}

/// Connection, name and receiver of the notifications.
pub(super) struct Channel {
    pub config: Config,
    pub tls: MakeRustlsConnect,
    pub name: String,
    pub commits: Arc<watch::Sender<u64>>,
}

impl CommitListener {
    pub fn listen(channel: Channel) -> Self {
        let announce = Arc::new(Notify::new());
        let task = tokio::spawn(follow(channel, Arc::clone(&announce)));
        Self { task, announce }
    }

    /// Notifies other processes of a commit. Announcements shortly after another one are merged.
    pub fn announce(&self) {
        self.announce.notify_one();
    }
}

impl Drop for CommitListener {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn follow(channel: Channel, announce: Arc<Notify>) {
    let mut failures = 0;
    loop {
        match connected(&channel, &announce).await {
            Ok(()) => failures = 0,
            Err(error) => tracing::debug!("cannot listen for commits: {error}"),
        }
        // Waiting callers check what was committed in the meantime.
        channel.commits.send_modify(|n| *n = n.wrapping_add(1));
        tokio::time::sleep(PAUSES[failures.min(PAUSES.len() - 1)]).await;
        failures += 1;
    }
}

/// Listens and announces until the connection is lost.
async fn connected(channel: &Channel, announce: &Notify) -> Result<(), tokio_postgres::Error> {
    let (client, mut connection) = channel.config.connect(channel.tls.clone()).await?;
    let (sender, mut receiver) = mpsc::channel::<()>(1);
    let own = listener();
    let mine = own.clone();
    let driver = tokio::spawn(async move {
        while let Some(Ok(message)) = poll_fn(|context| connection.poll_message(context)).await {
            if let AsyncMessage::Notification(notification) = message
                && notification.payload() != mine
            {
                // A single unread notification is enough.
                let _ = sender.try_send(());
            }
        }
    });
    let driver = Driver(driver);
    client.batch_execute(&format!("LISTEN {}", channel.name)).await?;
    channel.commits.send_modify(|n| *n = n.wrapping_add(1));
    let notify = format!("NOTIFY {}, '{own}'", channel.name);
    let mut due = Instant::now();
    loop {
        tokio::select! {
            notification = receiver.recv() => match notification {
                Some(()) => channel.commits.send_modify(|n| *n = n.wrapping_add(1)),
                None => break,
            },
            () = async { sleep_until(due).await; announce.notified().await; } => {
                due = Instant::now() + MIN_ANNOUNCE_INTERVAL;
                if let Err(error) = client.batch_execute(&notify).await {
                    // It is announced on the next connection.
                    announce.notify_one();
                    return Err(error);
                }
            }
        }
    }
    drop(driver);
    Ok(())
}

/// Returns a unique name for this listener.
fn listener() -> String {
    use std::sync::atomic::{AtomicU64, Ordering};
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let nanos = jiff::Timestamp::now().as_nanosecond();
    format!("{}-{nanos}-{}", std::process::id(), NEXT.fetch_add(1, Ordering::Relaxed))
}

struct Driver(JoinHandle<()>);

impl Drop for Driver {
    fn drop(&mut self) {
        self.0.abort();
    }
}
