//! The shapes of the application's events, and the words and lists that their values are chosen from.

use crate::word::Word;

/// An event: what its entries have in common, and its payload with `<names>` for values.
#[derive(Clone, Copy, Debug)]
pub(super) struct Shape {
    pub(super) operation: &'static str,
    /// What the object's number follows.
    pub(super) location: &'static str,
    pub(super) actor: &'static str,
    pub(super) purpose: &'static str,
    pub(super) payload: &'static str,
}

const fn shape(
    operation: &'static str,
    location: &'static str,
    actor: &'static str,
    purpose: &'static str,
    payload: &'static str,
) -> Shape {
    Shape { operation, location, actor, purpose, payload }
}

#[rustfmt::skip]
pub(super) const SHAPES: [Shape; 20] = [
    shape("order.placed", "orders/", "shop", "fulfilment",
        r#"{"order":"<object>","customer":"<subject>","placed_at":"<time>","currency":"<currency>","total":<amount>,"items":[{"article":<number>,"quantity":<count>,"price":<amount>},{"article":<number>,"quantity":<count>,"price":<amount>}],"channel":"<channel>","express":<flag>,"note":"<words>"}"#),
    shape("order.cancelled", "orders/", "shop", "fulfilment",
        r#"{"order":"<object>","customer":"<subject>","cancelled_at":"<time>","reason":"<reason>","refund":{"amount":<amount>,"currency":"<currency>","reference":"<token>"},"by_customer":<flag>,"comment":"<words>","channel":"<channel>"}"#),
    shape("payment.authorised", "payments/", "billing", "billing",
        r#"{"payment":"<object>","customer":"<subject>","amount":<amount>,"currency":"<currency>","method":"<method>","authorised_at":"<time>","authorisation":"<token>","three_d_secure":<flag>,"risk":{"score":<count>,"country":"<country>","device":"<device>"}}"#),
    shape("payment.failed", "payments/", "billing", "billing",
        r#"{"payment":"<object>","customer":"<subject>","amount":<amount>,"currency":"<currency>","method":"<method>","failed_at":"<time>","attempt":<count>,"retry":<flag>,"error":{"code":<number>,"message":"<words>"},"trace":"<token>"}"#),
    shape("invoice.sent", "invoices/", "billing", "billing",
        r#"{"invoice":"<object>","customer":"<subject>","net":<amount>,"tax":<amount>,"currency":"<currency>","sent_at":"<time>","due_at":"<time>","state":"<state>","language":"<language>","positions":<count>,"by_post":<flag>,"document":"<token>"}"#),
    shape("customer.registered", "customers/", "accounts", "contract",
        r#"{"account":"<object>","customer":"<subject>","registered_at":"<time>","country":"<country>","language":"<language>","plan":"<plan>","newsletter":<flag>,"referrer":"<channel>","device":"<device>","session":"<token>","terms_version":<count>}"#),
    shape("customer.updated", "customers/", "accounts", "contract",
        r#"{"account":"<object>","customer":"<subject>","updated_at":"<time>","changes":{"country":"<country>","language":"<language>","plan":"<plan>","newsletter":<flag>},"previous_version":<number>,"request":"<token>","reason":"<words>"}"#),
    shape("login.succeeded", "sessions/", "accounts", "security",
        r#"{"session":"<object>","customer":"<subject>","at":"<time>","method":"<login>","device":{"kind":"<device>","fingerprint":"<token>","known":<flag>},"country":"<country>","language":"<language>","previous_login":"<time>","attempts":<count>}"#),
    shape("login.failed", "sessions/", "accounts", "security",
        r#"{"session":"<object>","customer":"<subject>","at":"<time>","method":"<login>","reason":"<reason>","device":{"kind":"<device>","fingerprint":"<token>","known":<flag>},"country":"<country>","attempts":<count>,"locked":<flag>}"#),
    shape("consent.given", "consents/", "consent", "legal obligation",
        r#"{"consent":"<object>","customer":"<subject>","given_at":"<time>","purpose":"<purpose>","text_version":<count>,"channel":"<channel>","language":"<language>","proof":"<token>","double_opt_in":<flag>,"wording":"<words>"}"#),
    shape("consent.withdrawn", "consents/", "consent", "legal obligation",
        r#"{"consent":"<object>","customer":"<subject>","withdrawn_at":"<time>","given_at":"<time>","purpose":"<purpose>","channel":"<channel>","proof":"<token>","notified":<count>,"effective_at_once":<flag>,"comment":"<words>"}"#),
    shape("shipment.created", "shipments/", "logistics", "fulfilment",
        r#"{"shipment":"<object>","customer":"<subject>","created_at":"<time>","carrier":"<carrier>","tracking":"<token>","country":"<country>","weight":<amount>,"parcels":<count>,"insured":<flag>,"value":{"amount":<amount>,"currency":"<currency>"}}"#),
    shape("shipment.delivered", "shipments/", "logistics", "fulfilment",
        r#"{"shipment":"<object>","customer":"<subject>","delivered_at":"<time>","created_at":"<time>","carrier":"<carrier>","tracking":"<token>","country":"<country>","to_neighbour":<flag>,"attempt":<count>,"remark":"<words>"}"#),
    shape("ticket.opened", "tickets/", "support", "support",
        r#"{"ticket":"<object>","customer":"<subject>","opened_at":"<time>","priority":"<priority>","channel":"<channel>","language":"<language>","subject":"<words>","text":"<words>. <words>. <words>","attachments":<count>,"plan":"<plan>"}"#),
    shape("ticket.answered", "tickets/", "support", "support",
        r#"{"ticket":"<object>","customer":"<subject>","answered_at":"<time>","opened_at":"<time>","agent":<count>,"state":"<state>","text":"<words>. <words>. <words>. <words>","solved":<flag>,"message":"<token>"}"#),
    shape("export.requested", "exports/", "privacy", "legal obligation",
        r#"{"export":"<object>","customer":"<subject>","requested_at":"<time>","article":"<article>","state":"<state>","systems":<count>,"records":<number>,"identity_checked":<flag>,"request":"<token>","remark":"<words>"}"#),
    shape("erasure.done", "erasures/", "privacy", "legal obligation",
        r#"{"erasure":"<object>","customer":"<subject>","requested_at":"<time>","done_at":"<time>","systems":<count>,"records":<number>,"kept":{"records":<number>,"reason":"<reason>"},"certificate":"<token>","informed":<flag>}"#),
    shape("product.viewed", "products/", "shop", "analytics",
        r#"{"product":"<object>","customer":"<subject>","viewed_at":"<time>","session":"<token>","device":"<device>","country":"<country>","price":<amount>,"currency":"<currency>","position":<count>,"in_stock":<flag>,"search":"<words>"}"#),
    shape("message.sent", "messages/", "notifier", "marketing",
        r#"{"message":"<object>","customer":"<subject>","sent_at":"<time>","template":<number>,"campaign":"<token>","channel":"<channel>","language":"<language>","title":"<words>","text":"<words>. <words>","opened":<flag>,"size":<number>}"#),
    shape("rule.evaluated", "rules/", "pricing", "contract",
        r#"{"rule":"<object>","customer":"<subject>","evaluated_at":"<time>","plan":"<plan>","inputs":{"orders":<number>,"revenue":<amount>,"country":"<country>","months":<count>},"discount":<amount>,"applied":<flag>,"trace":"<token>","state":"<state>"}"#),
];

/// The list of this name.
///
/// # Panics
/// Where there is none: a shape misspells it.
pub(super) fn lists(name: &str) -> &'static [&'static str] {
    match name {
        "article" => &["15", "16", "17", "18", "20", "21"],
        "carrier" => &["dhl", "ups", "dpd", "gls", "hermes", "post"],
        "channel" => &["web", "app", "phone", "shop", "partner", "mail"],
        "country" => {
            &["AT", "BE", "CH", "CZ", "DE", "DK", "ES", "FI", "FR", "IE", "IT", "NL", "NO", "PL", "PT", "SE"]
        }
        "currency" => &["EUR", "CHF", "GBP", "SEK", "DKK", "PLN", "CZK", "NOK"],
        "device" => &["phone", "tablet", "laptop", "desktop", "television", "watch"],
        "language" => &["de", "en", "fr", "es", "it", "nl", "pl", "sv"],
        "login" => &["password", "passkey", "one_time_code", "single_sign_on"],
        "method" => &["card", "transfer", "direct_debit", "wallet", "invoice"],
        "plan" => &["free", "basic", "plus", "premium"],
        "priority" => &["low", "normal", "high", "urgent"],
        "purpose" => &["newsletter", "analytics", "profiling", "research", "third_party_offers"],
        "reason" => &[
            "changed_mind",
            "too_late",
            "wrong_article",
            "too_expensive",
            "duplicate",
            "fraud_check",
            "expired",
            "other",
        ],
        "state" => &["new", "open", "waiting", "approved", "rejected", "closed"],
        unknown => panic!("there is no list `{unknown}`"),
    }
}

#[rustfmt::skip]
const WORDS: [&str; 128] = [
    "account", "address", "after", "again", "agreed", "already", "amount", "another", "answer", "article", "asked",
    "available", "because", "before", "between", "billing", "box", "broken", "call", "cancel", "card", "change",
    "check", "city", "closed", "code", "colour", "confirmed", "contact", "contract", "copy", "customer", "damaged",
    "date", "day", "delayed", "delivery", "details", "different", "door", "double", "during", "earlier", "email",
    "error", "evening", "exchange", "expected", "field", "first", "form", "forwarded", "friday", "from", "garden",
    "given", "green", "help", "hotline", "house", "information", "instead", "invoice", "item", "large", "later",
    "left", "letter", "link", "list", "long", "message", "missing", "monday", "morning", "name", "neighbour", "new",
    "night", "number", "office", "old", "online", "open", "order", "other", "package", "page", "paid", "part",
    "payment", "phone", "picture", "please", "price", "problem", "product", "question", "quick", "ready", "received",
    "refund", "reminder", "repair", "reply", "return", "second", "send", "service", "shipping", "size", "small",
    "solved", "spare", "store", "street", "sunday", "system", "thanks", "today", "twice", "update", "urgent",
    "voucher", "waiting", "week", "wrong", "yesterday",
];

/// The words of texts, each with a space after it.
pub(super) static TEXT_WORDS: [Word; 128] = text_words();

const fn text_words() -> [Word; 128] {
    let mut words = [Word::new(b""); 128];
    let mut place = 0;
    while place < WORDS.len() {
        words[place] = Word::new(WORDS[place].as_bytes()).followed_by(b' ');
        place += 1;
    }
    words
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::collections::HashSet;

    #[test]
    fn words_and_lists_have_no_duplicates() {
        assert_eq!(WORDS.iter().collect::<HashSet<_>>().len(), WORDS.len());
        for name in SHAPES
            .iter()
            .flat_map(|shape| shape.payload.split('<').skip(1))
            .map(|piece| piece.split('>').next().unwrap())
        {
            if let super::super::Part::OneOf(list) = super::super::Part::named(name) {
                assert_eq!(list.iter().collect::<HashSet<_>>().len(), list.len(), "{name}");
            }
        }
        assert_eq!(SHAPES.iter().map(|shape| shape.operation).collect::<HashSet<_>>().len(), SHAPES.len());
    }
}
