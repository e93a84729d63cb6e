//! A proxy on the loopback interface that delays the answer to each `COMMIT` of a `PostgreSQL` connection, as a primary
//! does that is further away or waits for a replica.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream, UnixStream};
use tokio_postgres::config::Host;

/// Starts the proxy on the current runtime; returns the address of the store through it.
pub async fn start(store: &str, delay: Duration) -> String {
    let config: tokio_postgres::Config = store.parse().expect("an address");
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let proxy = listener.local_addr().expect("its address");
    let proxy_address = proxy_address(store, proxy);
    tokio::spawn(async move {
        while let Ok((client, _)) = listener.accept().await {
            client.set_nodelay(true).expect("a socket");
            let config = config.clone();
            tokio::spawn(async move {
                let (host, port) =
                    (&config.get_hosts()[0], config.get_ports().first().copied().unwrap_or(5432));
                match host {
                    Host::Tcp(name) => {
                        let server = TcpStream::connect((name.as_str(), port)).await.expect("a server");
                        server.set_nodelay(true).expect("a socket");
                        let (from, to) = server.into_split();
                        relay(client, from, to, delay).await;
                    }
                    Host::Unix(folder) => {
                        let socket = Path::new(folder).join(format!(".s.PGSQL.{port}"));
                        let server = UnixStream::connect(socket).await.expect("a server");
                        let (from, to) = server.into_split();
                        relay(client, from, to, delay).await;
                    }
                }
            });
        }
    });
    proxy_address
}

/// Replaces the host and port of an address.
fn proxy_address(store: &str, proxy: SocketAddr) -> String {
    let (before, query) = store.split_once('?').unwrap_or((store, ""));
    let (scheme, rest) = before.split_once("://").expect("an address");
    let (authority, database) = rest.split_once('/').unwrap_or((rest, ""));
    let user = authority.rsplit_once('@').map_or("", |(user, _)| user);
    format!("{scheme}://{user}@{proxy}/{database}?{query}&sslmode=disable")
}

async fn relay(
    client: TcpStream,
    mut from_server: impl AsyncRead + Unpin,
    mut to_server: impl AsyncWrite + Unpin + Send + 'static,
    delay: Duration,
) {
    let (mut from_client, mut to_client) = client.into_split();
    let requests = tokio::spawn(async move {
        let _ = tokio::io::copy(&mut from_client, &mut to_server).await;
        let _ = to_server.shutdown().await;
    });
    while let Some(message) = message(&mut from_server).await {
        // CommandComplete: https://www.postgresql.org/docs/current/protocol-message-formats.html
        if message.starts_with(b"C") && message.ends_with(b"COMMIT\0") {
            tokio::time::sleep(delay).await;
        }
        if to_client.write_all(&message).await.is_err() {
            break;
        }
    }
    requests.abort();
}

/// Returns the next message of a server: a type byte, and a length that includes itself but not the type.
async fn message(from: &mut (impl AsyncRead + Unpin)) -> Option<Vec<u8>> {
    let mut message = vec![0; 5];
    from.read_exact(&mut message).await.ok()?;
    let length = u32::from_be_bytes([message[1], message[2], message[3], message[4]]) as usize;
    message.resize(1 + length, 0);
    from.read_exact(&mut message[5..]).await.ok()?;
    Some(message)
}
