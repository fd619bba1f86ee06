# SPDX-License-Identifier: Apache-2.0
"""Addresses: e-mail in the forms in which it is escaped, IP, MAC, UUID."""
import ipaddress
import urllib.parse

from pii_set.around import VALUES, escaped, must, place

FIRST = ("alice", "bob", "carol", "dave", "erin", "frank", "grace", "heidi", "ivan", "judy", "mallory", "niaj", "olivia", "peggy",
         "rupert", "sybil", "trent", "victor", "wendy", "j\u00f6rg", "zo\u00eb", "\u0442\u0430\u043d\u044f")
LAST = ("smith", "jones", "garcia", "kowalski", "nguyen", "okafor", "tanaka", "silva", "rossi", "novak", "haddad", "larsen", "o'brien")
DOMAINS = ("example.com", "example.org", "example.net", "mail.example.com", "corp.example.co.uk", "mx1.dept.example.edu",
           "example.de", "xn--bcher-kva.example", "b\u00fccher.example.org", "sub-domain.example.io", "example.museum", "ex4mple.fr")


def user(draw):
    first, last = draw.choice(FIRST), draw.choice(LAST)
    return draw.choice((first, first + "." + last, first[0] + last, first + "_" + last, first + "-" + last,
                        first + "+" + last, first.capitalize() + "." + last.capitalize(), first + str(draw.randint(1, 99)),
                        first + "." + last + str(draw.randint(1960, 2005))))


def plain_user(draw):
    """Of letters, digits and what is never escaped."""
    return user(draw).replace("'", "").replace("+", ".").encode("ascii", "ignore").decode() or "ann"


def email(draw):
    return place(draw, must(user(draw) + "@" + draw.choice(DOMAINS)))


def wide(text):
    """Full-width forms of ASCII."""
    return "".join(chr(ord(c) + 0xfee0) if "!" <= c <= "~" else c for c in text)


def escaped_email(draw):
    name, domain = plain_user(draw), draw.choice(DOMAINS[:7])
    address = name + "@" + domain
    made = draw.choice((
        urllib.parse.quote(address), urllib.parse.quote(user(draw) + "@" + domain), address.replace("@", "%40"),
        address.replace("@", "&#64;"), address.replace("@", "&#x40;"), address.replace("@", "&commat;"),
        address.replace("@", "\\u0040"), address.replace("@", "\uff20"), wide(address)))
    return place(draw, must(made))


def literal_email(draw):
    """As source code and twice-escaped strings have it."""
    address = plain_user(draw) + draw.choice(("\\x40", "\\u{40}", "\\U00000040", "\\\\u0040", "&#064;", "&#0064;", "&#x0040;", "&#X40;", "%2540", "%252540"))
    return place(draw, must(address + draw.choice(DOMAINS[:7])))


def public_ipv4(draw):
    return ".".join(str(draw.choice((1, 254)) if draw.random() < 0.1 else draw.randint(low, high))
                    for low, high in ((11, 223), (0, 255), (0, 255), (1, 254)))


NET = ("%s", "peer=%s:443", "tcp://%s:9092", "http://%s/metrics", "http://%s:8080/", "dial tcp %s:5432: connection refused",
       "from %s port 22", "[%s]", "bind(%s)", "x-forwarded-for: %s, proxy", "listen %s;", "--advertise-addr=%s", "client %s;",
       "host %s is down", "addr:%s", "%s/24", "upstream=%s", '{"ip":"%s"}', "rpc@%s:7000", "conn-%s")


def ipv4(draw):
    return "value", draw.choice(NET) % must(public_ipv4(draw))


def ipv4_placed(draw):
    return place(draw, must(public_ipv4(draw)))


def ipv4_host(draw):
    dashed = draw.choice(("10-%d-%d-%d", "172-31-%d-%d", "192-168-%d-%d", "203-0-%d-%d"))
    dashed %= tuple(draw.randint(0, 254) for _ in range(dashed.count("%d")))
    return "value", draw.choice((
        "‹ip-«%s»›", "‹ip-«%s».ec2.internal›", "‹ip-«%s».eu-west-1.compute.internal›", "host=‹ip-«%s»›", "node ‹ip-«%s».ec2.internal› not ready",
        "‹ec2-«%s».compute-1.amazonaws.com›", "kubelet/‹ip-«%s»›", "http://‹ip-«%s»›:9100/metrics", "[‹ip-«%s»›]")) % dashed


def ipv6_text(draw):
    group = lambda: draw.randint(1, 0xffff)
    prefix = draw.choice(("2001:db8:", "2001:%x:" % group(), "2a02:%x:" % group(), "2607:f8b0:", "fd%02x:%x:" % (draw.randint(0, 255), group())))
    full = prefix + ":".join("%x" % group() for _ in range(6))
    return draw.choice((full, ipaddress.ip_address(full).exploded, full.upper(), prefix + ":%x" % group(),
                        prefix + "%x::%x" % (group(), group()), prefix + ":%x:%x" % (group(), group()),
                        "fe80::%x:%xff:fe%02x:%x" % (group(), group() >> 8, group() >> 8, group())))


def ipv6(draw):
    return "value", draw.choice(("%s", "[%s]:443", "http://[%s]/", "http://[%s]:8080/metrics", "peer=%s", "peer:%s", "addr %s",
                                 "tcp://[%s]:9092", "from %s port 22", "dial tcp [%s]:5432: refused", "%s/64", "(%s)",
                                 "ipv6:%%5B%s%%5D:443", '{"ip":"%s"}', "listen [%s]:80;")) % must(ipv6_text(draw))


LOCAL = ("%s", "[%s]:8080", "listen on %s", "host=%s", "http://[%s]:9090/", "connect(%s)", "dial tcp [%s]:53: refused", "addr=%s",
         "bound to %s, port 80", "[%s]:0", "tcp6 %s", "udp://[%s]:514")


def ipv6_local(draw):
    """The prefix of a mapped address is the same for all hosts."""
    return "value", draw.choice(LOCAL) % draw.choice((
        "«::1»", "‹::ffff:«%s»›" % public_ipv4(draw), "‹::ffff:«10.%d.3.4»›" % draw.randint(0, 255)))


def mac_text(draw):
    gap = draw.choice("::-")
    parts = ["%02x" % draw.randint(0, 255) for _ in range(6)]
    parts[0] = draw.choice(("02", "06", "0a", "0e", "aa", "fe", "de", "52", "00"))
    text = gap.join(parts)
    return text.upper() if draw.random() < 0.4 else text


def mac(draw):
    return "value", draw.choice(("%s", "eth0 %s", "hwaddr=%s", "ether %s brd", "link/ether %s", "mac:%s", "(%s)", '{"mac":"%s"}',
                                 "dhcp lease for %s expired", "device %s;", "wlan0: associated with %s", "bt/%s")) % must(mac_text(draw))


def escaped_mac(draw):
    return escaped(draw, must(mac_text(draw).replace("-", ":")))


def escaped_ipv4(draw):
    return escaped(draw, must(public_ipv4(draw)))


def long_mac(draw):
    """EUI-64, which some devices and interfaces have."""
    parts = ["%02x" % draw.randint(0, 255) for _ in range(8)]
    parts[3:5] = draw.choice((["ff", "fe"], parts[3:5]))
    text = draw.choice("-:-").join(parts)
    return "value", draw.choice(("%s", "eui64=%s", "node %s joined", '{"eui":"%s"}', "(%s)", "dev/%s", "zigbee %s, rssi -70")) % must(
        text.upper() if draw.random() < 0.4 else text)


def uuid_text(draw):
    text = "%08x-%04x-4%03x-%x%03x-%012x" % (draw.getrandbits(32), draw.getrandbits(16), draw.getrandbits(12),
                                             draw.choice((8, 9, 10, 11)), draw.getrandbits(12), draw.getrandbits(48))
    return text.upper() if draw.random() < 0.2 else text


def uuid(draw):
    return "value", draw.choice(VALUES) % must(uuid_text(draw))


def uuid_in_names(draw):
    return draw.choice(("value", "mapping", "function")), draw.choice((
        "build %s", "/var/lib/kubelet/pods/%s/volumes", "{%s}", "urn:uuid:%s", "node-%s", "<PrivateImplementationDetails>{%s}")) % must(uuid_text(draw))


RULES = {"email": [(email, 150), (escaped_email, 110), (literal_email, 70)], "ipv4": [(ipv4, 110), (ipv4_placed, 60), (ipv4_host, 60), (escaped_ipv4, 40)],
         "ipv6": [(ipv6, 130), (ipv6_local, 50)], "mac": [(mac, 120), (long_mac, 50), (escaped_mac, 40)], "uuid": [(uuid, 80), (uuid_in_names, 50)]}
