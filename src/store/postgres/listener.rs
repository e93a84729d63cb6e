//! Commits of other processes, by `LISTEN` and `NOTIFY` on a connection of its own.
//!
//! A notification is sent after the commit that it tells of, not within it: transactions that notify commit one after
//! the other. Of one that is lost with its process or its connection, the next look at the store finds the events:
//! after each new connection, and once a second while somebody waits.

use std::future::poll_fn;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Notify, mpsc, watch};
use tokio::task::JoinHandle;
use tokio_postgres::{AsyncMessage, Config};
use tokio_postgres_rustls::MakeRustlsConnect;

/// Pauses between attempts to connect.
const PAUSES: [Duration; 4] =
    [Duration::from_millis(100), Duration::from_millis(300), Duration::from_secs(1), Duration::from_secs(3)];

/// Listens for as long as it lives.
pub(super) struct CommitListener {
    task: JoinHandle<()>,
    announce: Arc<Notify>,
}

/// Where notifications come from and go to.
pub(super) struct Channel {
    pub config: Config,
    pub tls: MakeRustlsConnect,
    /// Name of the channel.
    pub name: String,
    pub commits: Arc<watch::Sender<u64>>,
}

impl CommitListener {
    pub fn listen(channel: Channel) -> Self {
        let announce = Arc::new(Notify::new());
        let task = tokio::spawn(follow(channel, Arc::clone(&announce)));
        Self { task, announce }
    }

    /// Tells other processes of a commit. Announcements that are made while one is sent become one.
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
            Err(error) => tracing::debug!("listening for commits: {error}"),
        }
        // Waiting callers look for what was committed meanwhile.
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
                // One that waits to be read stands for all.
                let _ = sender.try_send(());
            }
        }
    });
    let driver = Driver(driver);
    client.batch_execute(&format!("LISTEN {}", channel.name)).await?;
    channel.commits.send_modify(|n| *n = n.wrapping_add(1));
    let notify = format!("NOTIFY {}, '{own}'", channel.name);
    loop {
        tokio::select! {
            notification = receiver.recv() => match notification {
                Some(()) => channel.commits.send_modify(|n| *n = n.wrapping_add(1)),
                None => break,
            },
            () = announce.notified() => {
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

/// Tells one listener from another.
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
