//! Handshakes with certificates of the tests' own: what is agreed on, and what is refused and how that is said.
#![allow(clippy::disallowed_methods, reason = "tests write the files that people name")]

use super::*;
use rcgen::{
    BasicConstraints, CertificateParams, CertifiedIssuer, DistinguishedName, DnType, ExtendedKeyUsagePurpose,
    IsCa, KeyPair, SanType,
};
use std::fs;
use tempfile::TempDir;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio_rustls::rustls::{HandshakeKind, ProtocolVersion, SupportedProtocolVersion, version};

/// A folder with an authority, and with what it certifies.
struct Authority {
    folder: TempDir,
    issuer: CertifiedIssuer<'static, KeyPair>,
}

impl Authority {
    fn new() -> Self {
        Authority::named("an authority")
    }

    fn named(name: &str) -> Self {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name.push(DnType::CommonName, name);
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let issuer = CertifiedIssuer::self_signed(params, KeyPair::generate().unwrap()).unwrap();
        let authority = Authority { folder: tempfile::tempdir().unwrap(), issuer };
        authority.write("ca.pem", &authority.issuer.pem());
        authority
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    fn write(&self, name: &str, text: &str) -> PathBuf {
        fs::write(self.path(name), text).unwrap();
        self.path(name)
    }

    fn ca(&self) -> PathBuf {
        self.path("ca.pem")
    }

    /// A certificate and its key as files of this name.
    fn certify(&self, name: &str, change: impl FnOnce(&mut CertificateParams)) -> (PathBuf, PathBuf) {
        let mut params = CertificateParams::new([]).unwrap();
        params.distinguished_name = DistinguishedName::new();
        change(&mut params);
        let key = KeyPair::generate().unwrap();
        let certificate = params.signed_by(&key, &self.issuer).unwrap();
        let pem = self.write(&format!("{name}.pem"), &certificate.pem());
        (pem, self.write(&format!("{name}.key"), &key.serialize_pem()))
    }

    /// A server for `redis.example.com` and 192.0.2.7.
    fn server(&self) -> (PathBuf, PathBuf) {
        self.certify("server", |params| {
            params.subject_alt_names =
                vec![dns("redis.example.com"), SanType::IpAddress([192, 0, 2, 7].into())];
        })
    }

    fn client(&self, common_name: &str) -> (PathBuf, PathBuf) {
        self.certify("client", |params| params.distinguished_name.push(DnType::CommonName, common_name))
    }
}

fn dns(name: &str) -> SanType {
    SanType::DnsName(name.try_into().unwrap())
}

fn listen((certificate, key): (PathBuf, PathBuf), client_ca: Option<PathBuf>) -> ListenTls {
    ListenTls { certificate, key, client_ca }
}

fn upstream(ca: PathBuf, certificate: Option<(PathBuf, PathBuf)>) -> UpstreamTls {
    UpstreamTls { ca, server_name: "redis.example.com".to_owned(), certificate }
}

/// What a connection was, or what either side said of it.
#[derive(Debug)]
struct Agreed {
    established: Option<Established>,
    version: Option<ProtocolVersion>,
    /// Whether it went on with a session of an earlier connection.
    resumed: bool,
}

/// What both sides say of a handshake after which each sends the other a byte, as a command and its reply.
fn shake(listen: &ListenTls, upstream: &UpstreamTls) -> (Result<Agreed, String>, Result<(), String>) {
    shake_with(&Acceptor::new(listen).unwrap(), &Connector::new(upstream).unwrap())
}

fn shake_with(acceptor: &Acceptor, connector: &Connector) -> (Result<Agreed, String>, Result<(), String>) {
    let (near, far) = tokio::io::duplex(1000);
    let server = async {
        let (mut stream, established) = acceptor.accept(far).await.map_err(|error| error.to_string())?;
        let version = stream.get_ref().1.protocol_version();
        let resumed = stream.get_ref().1.handshake_kind() == Some(HandshakeKind::Resumed);
        let byte = stream.read_u8().await.map_err(|error| error.to_string())?;
        stream.write_u8(byte + 1).await.map_err(|error| error.to_string())?;
        stream.flush().await.map_err(|error| error.to_string())?;
        Ok(Agreed { established, version, resumed })
    };
    let client = async {
        let mut stream = connector.connect(near).await.map_err(|error| error.to_string())?;
        stream.write_u8(7).await.map_err(|error| error.to_string())?;
        stream.flush().await.map_err(|error| error.to_string())?;
        assert_eq!(stream.read_u8().await.map_err(|error| error.to_string())?, 8);
        Ok(())
    };
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    runtime.block_on(async { tokio::join!(server, client) })
}

/// The same connector with one version alone.
fn only(
    connector: &Connector,
    upstream: &UpstreamTls,
    version: &'static SupportedProtocolVersion,
) -> Connector {
    let config = ClientConfig::builder_with_provider(provider()).with_protocol_versions(&[version]).unwrap();
    let config = config.with_root_certificates(authorities(&upstream.ca).unwrap());
    let config = match &upstream.certificate {
        None => config.with_no_client_auth(),
        Some((certificate, key)) => config
            .with_client_auth_cert(
                files::certificates(certificate).unwrap(),
                files::private_key(key).unwrap(),
            )
            .unwrap(),
    };
    Connector { inner: TlsConnector::from(Arc::new(config)), ..connector.clone() }
}

#[test]
fn both_versions_are_agreed_on_and_a_certificate_says_who_a_client_is() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let open = listen(servers.server(), None);
    let closed = listen(servers.server(), Some(clients.ca()));
    let mut nobody = upstream(servers.ca(), None);
    let app = upstream(servers.ca(), Some(clients.client("app")));

    for (version, expected) in
        [(&version::TLS12, ProtocolVersion::TLSv1_2), (&version::TLS13, ProtocolVersion::TLSv1_3)]
    {
        for (listen, upstream, name) in
            [(&open, &nobody, None), (&open, &app, None), (&closed, &app, Some("app"))]
        {
            let acceptor = Acceptor::new(listen).unwrap();
            let connector = only(&Connector::new(upstream).unwrap(), upstream, version);
            // The second time a session can be taken up again, but by clients that have to show who they are.
            for resumed in [false, listen.client_ca.is_none()] {
                let (agreed, said) = shake_with(&acceptor, &connector);
                let agreed = agreed.unwrap();
                assert_eq!((agreed.version, agreed.resumed, said), (Some(expected), resumed, Ok(())));
                assert_eq!(agreed.established.map(|it| it.name).as_deref(), name);
            }
        }
    }
    let (agreed, said) = shake(&closed, &app);
    assert_eq!((agreed.unwrap().version, said), (Some(ProtocolVersion::TLSv1_3), Ok(())));
    nobody.server_name = "192.0.2.7".to_owned();
    assert_eq!(shake(&open, &nobody).1, Ok(()));
}

#[test]
fn a_name_is_the_common_name_or_the_first_of_the_others() {
    let authority = Authority::new();
    let listen = listen(authority.server(), Some(authority.ca()));
    let uri = |name: &str| SanType::URI(name.try_into().unwrap());
    for (common_names, others, expected) in [
        (&["app"][..], vec![], Some("app")),
        (&["app"], vec![uri("spiffe://example.com/app"), dns("app.example.com")], Some("app")),
        (&[], vec![dns("app.example.com"), uri("spiffe://a/b"), uri("spiffe://a/c")], Some("spiffe://a/b")),
        (&[], vec![dns("app.example.com"), dns("b.example.com")], Some("app.example.com")),
        (&["app\nroot"], vec![dns("app.example.com")], Some("app.example.com")),
        (&[], vec![], None),
    ] {
        let client = authority.certify("client", |params| {
            for name in common_names {
                params.distinguished_name.push(DnType::CommonName, *name);
            }
            params.distinguished_name.push(DnType::OrganizationName, "nobody");
            params.subject_alt_names = others;
        });
        let (agreed, said) = shake(&listen, &upstream(authority.ca(), Some(client)));
        assert_eq!(said, Ok(()));
        assert_eq!(agreed.unwrap().established.map(|it| it.name).as_deref(), expected);
    }
}

#[test]
fn a_server_that_is_not_the_one_is_refused() {
    let (authority, other) = (Authority::new(), Authority::named("another"));
    let listening = listen(authority.server(), None);
    let refused = |listen: &ListenTls, upstream: &UpstreamTls| {
        let (accepted, connected) = shake(listen, upstream);
        accepted.unwrap_err();
        connected.unwrap_err()
    };
    // Of another name, or of the same.
    for other in [&other, &Authority::new()] {
        let expected = format!(
            "no TLS with the server: its certificate is of no authority in {}, which `upstream.tls.ca` names",
            other.ca().display()
        );
        assert_eq!(refused(&listening, &upstream(other.ca(), None)), expected);
    }
    for name in ["other.example.com", "example.com", "192.0.2.8", "a.redis.example.com"] {
        let named = UpstreamTls { server_name: name.to_owned(), ..upstream(authority.ca(), None) };
        let said = refused(&listening, &named);
        assert!(said.starts_with("no TLS with the server: certificate not valid for name"), "{said}");
        assert!(said.ends_with("; `upstream.tls.server_name` has to be a name that it is for"), "{said}");
    }
    // A common name is no name of a server.
    let unnamed = authority
        .certify("unnamed", |it| it.distinguished_name.push(DnType::CommonName, "redis.example.com"));
    let said = refused(&listen(unnamed, None), &upstream(authority.ca(), None));
    assert!(said.contains("certificate not valid for name"), "{said}");
    for (from, to, expected) in [(2001, 2002, "expired"), (2999, 3000, "not valid yet")] {
        let server = authority.certify("old", |params| {
            params.subject_alt_names = vec![dns("redis.example.com")];
            (params.not_before, params.not_after) = (year(from), year(to));
        });
        let said = refused(&listen(server, None), &upstream(authority.ca(), None));
        assert!(
            said.starts_with("no TLS with the server: its certificate is refused: certificate"),
            "{said}"
        );
        assert!(said.contains(expected), "{said}");
    }
    let client_only = authority.certify("client-only", |params| {
        params.subject_alt_names = vec![dns("redis.example.com")];
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    });
    let said = refused(&listen(client_only, None), &upstream(authority.ca(), None));
    assert!(said.contains("its certificate is refused"), "{said}");
}

#[test]
fn a_client_without_the_certificate_that_it_needs_is_refused() {
    let (servers, clients) = (Authority::new(), Authority::new());
    let listen = listen(servers.server(), Some(clients.ca()));
    let refused = |certificate| {
        let (accepted, connected) = shake(&listen, &upstream(servers.ca(), certificate));
        connected.unwrap_err();
        accepted.unwrap_err()
    };
    let ca = clients.ca();
    assert_eq!(
        refused(None),
        format!(
            "no TLS with a client: it has no certificate; it needs one of an authority in {}",
            ca.display()
        )
    );
    for other in [&servers, &Authority::named("another")] {
        let expected =
            format!("no TLS with a client: its certificate is of no authority in {}", ca.display());
        assert_eq!(refused(Some(other.client("app"))), expected);
    }
    let old =
        clients.certify("old", |params| (params.not_before, params.not_after) = (year(2001), year(2002)));
    let said = refused(Some(old));
    assert!(
        said.starts_with("no TLS with a client: its certificate is refused: certificate expired"),
        "{said}"
    );
    let server_only = clients.certify("server-only", |params| {
        params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    });
    assert!(refused(Some(server_only)).contains("its certificate is refused"));
}

fn year(year: i32) -> time::OffsetDateTime {
    rcgen::date_time_ymd(year, 1, 1)
}

#[test]
fn who_speaks_no_tls_is_refused() {
    let authority = Authority::new();
    let acceptor = Acceptor::new(&listen(authority.server(), None)).unwrap();
    let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
    for (sent, expected) in [
        (&b"*1\r\n$4\r\nPING\r\n"[..], "no TLS with a client: received corrupt message"),
        (b"", "no TLS with a client: tls handshake eof"),
        (b"\x16\x03\x01", "no TLS with a client: tls handshake eof"),
    ] {
        let (mut near, far) = tokio::io::duplex(1000);
        let said = runtime.block_on(async {
            near.write_all(sent).await.unwrap();
            near.shutdown().await.unwrap();
            acceptor.accept(far).await.map(drop).unwrap_err().to_string()
        });
        assert!(said.starts_with(expected), "{said}");
    }
}

#[test]
fn a_file_that_is_not_what_it_has_to_be_is_named() {
    let authority = Authority::new();
    let (certificate, key) = authority.server();
    let (_, other_key) = authority.certify("other", |_| ());
    let text = |path: &Path| fs::read_to_string(path).unwrap();
    let missing = authority.path("missing.pem");
    let empty = authority.write("empty.pem", "");
    let cut = authority.write("cut.pem", &text(&certificate)[..200]);
    let cut_key = authority.write("cut.key", &text(&key)[..100]);
    let two = authority.write("two.key", &(text(&key) + &text(&other_key)));
    let encrypted =
        authority.write("encrypted.key", &text(&key).replace("PRIVATE KEY", "ENCRYPTED PRIVATE KEY"));
    let long = authority.write("long.pem", &"x".repeat((1 << 20) + 1));
    let junk = authority.write("junk.pem", "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n");
    let junk_key =
        authority.write("junk.key", "-----BEGIN PRIVATE KEY-----\nAAAA\n-----END PRIVATE KEY-----\n");

    for (path, expected) in [
        (&missing, "it cannot be read: No such file or directory (os error 2)"),
        (&empty, "there is no certificate in it: it needs one in PEM (-----BEGIN CERTIFICATE-----)"),
        (&key, "there is no certificate in it: it needs one in PEM (-----BEGIN CERTIFICATE-----)"),
        (&cut, "this is no PEM: a certificate in it is cut off or is no base64"),
        (&long, "it has over 1 MiB, which no file of certificates or keys has"),
    ] {
        let expected = format!("{}: {expected}", path.display());
        let said = |result: Result<(), TlsError>| result.unwrap_err().what;
        let own = listen((path.clone(), key.clone()), None);
        assert_eq!(said(Acceptor::new(&own).map(drop)), expected);
        let own = listen((certificate.clone(), key.clone()), Some(path.clone()));
        assert_eq!(said(Acceptor::new(&own).map(drop)), expected);
        assert_eq!(said(Connector::new(&upstream(path.clone(), None)).map(drop)), expected);
        let own = upstream(authority.ca(), Some((path.clone(), key.clone())));
        assert_eq!(said(Connector::new(&own).map(drop)), expected);
    }
    let displayed = certificate.display();
    for (path, expected) in [
        (&missing, "it cannot be read: No such file or directory (os error 2)".to_owned()),
        (&certificate, "there is no private key in it: it needs one in PEM (-----BEGIN PRIVATE KEY-----)".to_owned()),
        (&cut_key, "this is no PEM: a key in it is cut off or is no base64".to_owned()),
        (&two, "there are several keys in it: it has to have the certificate's and no other".to_owned()),
        (
            &encrypted,
            "the key in it is encrypted: the proxy needs it without a passphrase (`openssl pkey -in … -out …`)".to_owned(),
        ),
        (&other_key, format!("this is not the key of the first certificate in {displayed}")),
    ] {
        let expected = format!("{}: {expected}", path.display());
        let own = listen((certificate.clone(), path.clone()), None);
        assert_eq!(Acceptor::new(&own).map(drop).unwrap_err().what, expected);
        let own = upstream(authority.ca(), Some((certificate.clone(), path.clone())));
        assert_eq!(Connector::new(&own).map(drop).unwrap_err().what, expected);
    }
    // What the libraries say of it may change: which file it is does not.
    for (listen, path) in [
        (listen((junk.clone(), key.clone()), None), &junk),
        (listen((certificate.clone(), junk_key.clone()), None), &junk_key),
        (listen((certificate.clone(), key.clone()), Some(junk.clone())), &junk),
    ] {
        let said = Acceptor::new(&listen).map(drop).unwrap_err().what;
        assert!(said.starts_with(&format!("{}: ", path.display())), "{said}");
    }
    let unnamed = UpstreamTls { server_name: "redis example".to_owned(), ..upstream(authority.ca(), None) };
    assert_eq!(
        Connector::new(&unnamed).map(drop).unwrap_err().what,
        "`upstream.tls.server_name` is \"redis example\", which no certificate can be for: it has to be a DNS name or an IP address"
    );
}
