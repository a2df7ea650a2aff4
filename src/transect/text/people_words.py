"""Words that do not mean somebody, though they stand in names."""

from __future__ import annotations

__all__ = ["OFFICES", "ORDINARY", "TITLES"]

_TITLES = """
bsc dipl dr frau herr herrn ing med miss mr mrs ms msc prof
"""
TITLES = frozenset(_TITLES.split())

_OFFICES = """
abteilung account accounts admin administrator alert alerts anfrage benutzer billing bot buero
büro center contact customer department desk edv einkauf finance group gruppe help helpdesk
hotline hr human info information it kontakt kunde kunden kundendienst leitung mail mailer
marketing monitoring network no noreply notification notifications office personal post
postmaster reception reply resources root sales security sekretariat server service services
staff support system systems team test ticket tickets unbekannt unknown user users vertrieb web
webmaster zentrale
"""
# Who has one of these in the name is no person: its words alone are everybody's.
OFFICES = frozenset(_OFFICES.split())

_ORDINARY = """
ab als alt am an and april arm art auch auf august aus autumn bach baker banks bauer becker bei
bein berg best bill bitte black braun brown bush butler can carpenter carter case cook das dawn
day dean dem den der die ein eine faith fast feld field fischer fisher for frank fuchs grace
graf grant gray green grey gross gut guy hahn hand herbst herzog hill hope house hunter im ist
jack jaeger joy june jung jäger kaiser kern king klein koch koenig kopf kurz könig lane lang
long mark max may meer miller mit mueller muller müller nach neu nord not oder ost page park
pool potter price rich richter rose sand schneider schwarz see short smith sommer stein sue
summer süd the um und vogel von vor wagner wald walker weber weiss weiß west white will winter
wolf wood you young zu
"""
# Words of names that are also words of English or German: alone they count with a capital only.
ORDINARY = frozenset(_ORDINARY.split())
