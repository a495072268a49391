use crate::vectors::unhex;
use bulla_proof::{Hash, HashId, Sha256, sha256};

const ABC_SHA256: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
const ABC_SHA3_256: &str = "3a985da74fe225b2045c172d6bd390bd855f086e3e9d525b46bfe24511431532";

#[test]
fn hashes_the_parts_as_one() {
    for parts in [&[b"abc".as_slice()][..], &[b"a", b"", b"bc"]] {
        assert_eq!(sha256(parts).to_string(), ABC_SHA256);
        assert_eq!(HashId::Sha256.hash(parts).to_string(), ABC_SHA256);
        assert_eq!(HashId::Sha3_256.hash(parts).to_string(), ABC_SHA3_256);
    }
    let mut streamed = Sha256::new();
    streamed.update(b"ab");
    streamed.update(b"c");
    assert_eq!(streamed.finish().to_string(), ABC_SHA256);
}

#[test]
fn base64_has_one_spelling() {
    let hash = sha256(&[]);
    let text = hash.to_base64();
    assert_eq!(text, "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU=");
    assert_eq!(Hash::from_base64(&text), Some(hash));
    for wrong in [
        "",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFV=",
        "47DEQpj8HBSa-_TImW-5JCeuQeRkm5NMpJWZG3hSuFU=",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFUA",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuF==",
        "47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU\n",
        " 47DEQpj8HBSa+/TImW+5JCeuQeRkm5NMpJWZG3hSuFU",
    ] {
        assert_eq!(Hash::from_base64(wrong), None, "{wrong:?}");
    }
}

#[test]
fn shows_and_orders_by_bytes() {
    let hash = Hash(unhex(ABC_SHA256).try_into().unwrap());
    assert_eq!(format!("{hash:?}"), ABC_SHA256);
    assert!(Hash::ZERO < hash && hash.as_bytes() == &hash.0);
}

#[test]
fn ids_and_names_agree() {
    for id in HashId::ALL {
        assert_eq!(HashId::from_u8(id as u8), Some(id));
        assert_eq!(HashId::from_name(id.name()), Some(id));
    }
    assert_eq!((HashId::from_u8(0), HashId::from_u8(3)), (None, None));
    assert_eq!((HashId::from_name("SHA256"), HashId::from_name("")), (None, None));
}
