"""The words of synthetic tickets in English and German, and the names of made-up people.

No word of `TOPICS` or `SLOTS` stands anywhere else in these texts, and none is a stop word: what a
ticket tells can be read off them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

QUEUES = ("printing", "mail", "network", "accounts", "storage", "telephony", "software", "workplace")

# By language, for each queue.
TOPICS: dict[str, tuple[tuple[str, ...], ...]] = {
    "en": (
        ("printer", "toner", "cartridge", "tray", "scanner"),
        ("mailbox", "calendar", "attachment", "newsletter", "inbox"),
        ("router", "switch", "cable", "firewall", "tunnel"),
        ("password", "account", "login", "permission", "token"),
        ("folder", "backup", "quota", "archive", "disk"),
        ("telephone", "voicemail", "extension", "handset", "hotline"),
        ("licence", "installer", "plugin", "macro", "update"),
        ("monitor", "keyboard", "mouse", "laptop", "docking"),
    ),
    "de": (
        ("Drucker", "Toner", "Patrone", "Papierfach", "Scanner"),
        ("Postfach", "Kalender", "Anhang", "Rundbrief", "Posteingang"),
        ("Router", "Netzwerkdose", "Kabel", "Firewall", "Tunnel"),
        ("Kennwort", "Konto", "Anmeldung", "Berechtigung", "Token"),
        ("Ordner", "Sicherung", "Speicherplatz", "Archiv", "Festplatte"),
        ("Telefon", "Anrufbeantworter", "Durchwahl", "Hörer", "Hotline"),
        ("Lizenz", "Installationsprogramm", "Plugin", "Makro", "Aktualisierung"),
        ("Bildschirm", "Tastatur", "Maus", "Notebook", "Dockingstation"),
    ),
}

# By language, the alternatives of each slot: of a first reply, then of a later one.
SLOTS: dict[str, tuple[tuple[str, ...], ...]] = {
    "en": (
        ("message", "report", "enquiry", "memo"),
        ("inspected", "examined", "investigated", "analysed"),
        ("replaced", "renewed", "restored", "repaired"),
        ("shortly", "tonight", "tomorrow", "presently"),
        ("escalated", "forwarded", "reassigned", "delegated"),
        ("vendor", "manufacturer", "supplier", "distributor"),
    ),
    "de": (
        ("Nachricht", "Meldung", "Anfrage", "Mitteilung"),
        ("geprüft", "untersucht", "analysiert", "kontrolliert"),
        ("ersetzt", "erneuert", "wiederhergestellt", "repariert"),
        ("sofort", "abends", "demnächst", "übermorgen"),
        ("weitergeleitet", "weitergegeben", "übertragen", "eskaliert"),
        ("Hersteller", "Lieferanten", "Anbieter", "Händler"),
    ),
}

# By language; `hello` and `again` have some to draw from, and so does what customers add.
MESSAGES: dict[str, dict[str, Any]] = {
    "en": {
        "hello": "Hello {name},",
        "team": ("Hello everybody,", "Good day,", "Dear help desk,"),
        "question": (
            "since this week the {one} has stopped and the {two} shows an error.",
            "my {one} does not work, and the {two} is slow. Can you please help?",
            "could somebody look at the {one}? The {two} is concerned as well.",
        ),
        "more": (
            "Call me on 030 23125 {number}.",
            "My machine is 192.0.2.{number}.",
            "Write to desk{number}@example.org, please.",
            "It is urgent.",
            "Many thanks!",
        ),
        "reply": "thanks for your {0}. I have {1} the {one}, and it gets {2} {3}.",
        "again": ("it happens again today.", "unfortunately nothing has changed.", "now it is worse."),
        "later": "I have {0} this to the {1}.",
        "signature": "Yours {name}",
    },
    "de": {
        "hello": "Hallo {name},",
        "team": ("Hallo zusammen,", "Guten Tag,", "Liebes Team,"),
        "question": (
            "seit dieser Woche geht {one} nicht mehr, und {two} zeigt einen Fehler.",
            "bei mir streikt {one}, und {two} ist langsam. Können Sie bitte helfen?",
            "kann jemand nach {one} sehen? Auch {two} ist betroffen.",
        ),
        "more": (
            "Sie erreichen mich unter 030 23125 {number}.",
            "Mein Rechner ist 192.0.2.{number}.",
            "Schreiben Sie bitte an platz{number}@example.org.",
            "Es eilt.",
            "Vielen Dank!",
        ),
        "reply": "danke für Ihre {0}. Ich habe {one} {1}, und es wird {3} {2}.",
        "again": ("heute ist es wieder so.", "leider hat sich nichts getan.", "jetzt ist es schlimmer."),
        "later": "Ich habe das an {1} {0}.",
        "signature": "Ihr {name}",
    },
}

# Begins, and ends that go with each of them.
_GIVEN = (
    "Al Be Da El Fa Gi He Is Jo Ka Lu Mo No Or Pe Ro Sa Te Ul Vi",
    "bra dric fen gund kor lian mir nwyn ric stan tomar vik",
)
# Begins, and ends that go with each of them.
_FAMILY = (
    "Ahl Brand Cron Dorn Ebbing Falk Grun Holm Ihr Jern Kalk Lind Murk Nord Oster Pfal Quast Rosen Stam Thal",
    "acker becken dorfer eggen feldt gaarden hauge kvist loh mander quist sund",
)


def people(owners: int, seed: int) -> tuple[list[str], list[str]]:
    """Return the names of the owners and of 96 customers or more: no two share a part of theirs.

    They are put together from syllables and no real person is meant.
    """
    generator = np.random.default_rng([seed, 15])
    given, family = (
        generator.permutation([begin + end for begin in begins.split() for end in ends.split()]).tolist()
        for begins, ends in (_GIVEN, _FAMILY)
    )
    names = [f"{given_name} {family_name}" for given_name, family_name in zip(given, family, strict=True)]
    return names[:owners], names[owners:]
