//! Attacks over sockets: TCP, UDP, Unix, abstract, and ways around.

use std::io::Read;
use std::net::{TcpListener, UdpSocket};
use std::os::unix::net::{UnixDatagram, UnixListener};
use std::time::Duration;

use skills_sandbox::{End, Guarantee};
use tokio_util::sync::CancellationToken;

use super::attack_setup::{Attack, AttackSetup, Bundle, open_folder, sandboxes, text};

#[tokio::test]
async fn no_tcp_connection() {
    Attack::new("tcp.py", Guarantee::Network)
        .is_repelled(|_| {
            let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
            listener.set_nonblocking(true).expect("a socket");
            let port = listener.local_addr().expect("bound").port();
            AttackSetup::new([port.to_string()]).seen_by(move |_| listener.accept().is_ok())
        })
        .await;
}

#[tokio::test]
async fn no_udp_datagram() {
    Attack::new("udp.py", Guarantee::Network)
        .is_repelled(|_| {
            let socket = UdpSocket::bind("127.0.0.1:0").expect("a free port");
            socket.set_nonblocking(true).expect("a socket");
            let port = socket.local_addr().expect("bound").port();
            // On the loopback a datagram has arrived when its sender has returned.
            AttackSetup::new([port.to_string()]).seen_by(move |_| socket.recv(&mut [0; 16]).is_ok())
        })
        .await;
}

#[tokio::test]
async fn no_unix_socket() {
    Attack::new("unix_socket.py", Guarantee::Network)
        .is_repelled(|_| {
            let place = open_folder();
            let path = place.path().join("socket");
            let listener = listening(UnixListener::bind(&path).expect("bound"));
            open_to_all(&path);
            AttackSetup::new([text(&path)]).keeping(place).seen_by(listener)
        })
        .await;
}

#[cfg(target_os = "linux")]
#[tokio::test]
async fn no_abstract_socket() {
    use std::os::linux::net::SocketAddrExt;
    use std::os::unix::net::SocketAddr;
    Attack::new("unix_socket.py", Guarantee::Network)
        .is_repelled(|bundle| {
            let name = text(bundle.path());
            let address = SocketAddr::from_abstract_name(&name).expect("short enough");
            let listener = listening(UnixListener::bind_addr(&address).expect("bound"));
            AttackSetup::new([format!("@{name}")]).seen_by(listener)
        })
        .await;
}

#[tokio::test]
async fn no_datagram_from_a_socket_pair() {
    Attack::new("datagram_pair.py", Guarantee::Network)
        .is_repelled(|_| {
            let place = open_folder();
            let path = place.path().join("socket");
            let socket = UnixDatagram::bind(&path).expect("bound");
            socket.set_nonblocking(true).expect("a socket");
            open_to_all(&path);
            AttackSetup::new([text(&path)]).keeping(place).seen_by(move |_| socket.recv(&mut [0; 16]).is_ok())
        })
        .await;
}

#[tokio::test]
async fn no_socket_of_any_family() {
    Attack::new("socket_families.py", Guarantee::Network).is_repelled(|_| AttackSetup::new([])).await;
}

#[tokio::test]
async fn event_loops_and_child_processes_still_work() {
    const LOOP: &str = "
import asyncio
import subprocess

async def main():
    child = await asyncio.create_subprocess_exec('echo', 'from a child', stdout=subprocess.PIPE)
    print((await child.communicate())[0].decode().strip())

asyncio.run(main())
";
    for (name, sandbox) in sandboxes() {
        let bundle = Bundle::of("loop.py", LOOP);
        let outcome = sandbox.run(bundle.spec("loop.py"), CancellationToken::new()).await.expect("starts");
        assert_eq!(outcome.end, End::ExitCode(0), "{name}: {}", outcome.stderr.text());
        assert_eq!(outcome.stdout.text(), "from a child\n", "{name}");
    }
}

fn listening(listener: UnixListener) -> impl FnMut(&skills_sandbox::Outcome) -> bool + Send {
    listener.set_nonblocking(true).expect("a socket");
    move |_| match listener.accept() {
        Ok((mut peer, _)) => {
            peer.set_nonblocking(false).expect("a socket");
            peer.set_read_timeout(Some(Duration::from_secs(5))).expect("a socket");
            peer.read(&mut [0; 16]).is_ok_and(|read| read > 0)
        }
        Err(_) => false,
    }
}

fn open_to_all(path: &std::path::Path) {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, PermissionsExt::from_mode(0o777)).expect("own socket");
}
