"""Words that do not mean somebody, though they stand in names."""

from __future__ import annotations

_TITLES = """
bsc dipl dr frau herr herrn ing med miss mr mrs ms msc prof
"""
TITLES = frozenset(_TITLES.split())

_OFFICES = """
abteilung abuse account accounts admin administrator alert alerts anfrage anonym anonymous
anyone benutzer billing bot buero büro center contact customer daemon datenschutz department
desk developers edv einkauf employees everybody everyone finance group gruppe help helpdesk
hostmaster hotline hr human info information it kontakt kunde kunden kundendienst leitung mail
mailer marketing mitarbeiter monitoring network newsletter no nobody noreply notification
notifications office payroll personal post postmaster privacy reception rechnung rechnungen
reply resources root sales security sekretariat server service services staff students
studierende support system systems team teams test ticket tickets unassigned unbekannt unknown
user users vertrieb web webmaster zentrale
"""
# Who has one of these in the name is no person: its words alone are everybody's.
OFFICES = frozenset(_OFFICES.split())

_NOBODYS = """
all alle de del della dem den der dos hallo hello invoice invoices jobs legal list news none
operations order orders press presse shop van vom von zum zur
"""
# In names they stand beside others, and in addresses for everybody: alone they mean nobody.
NOBODYS = frozenset(_NOBODYS.split())

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
