# SPDX-License-Identifier: Apache-2.0
"""Certificates for tests, made with the openssl command."""
import pathlib
import subprocess


def openssl(directory, *arguments):
    subprocess.run(["openssl", *arguments], cwd=directory, check=True, stdout=subprocess.DEVNULL,
                   stderr=subprocess.DEVNULL)


def make_ca(directory, name):
    openssl(directory, "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-days", "2",
            "-subj", "/CN=" + name, "-keyout", name + ".key", "-out", name + ".pem")


def make_leaf(directory, ca, name, subject, usage=None, names="", own="DNS:localhost,IP:127.0.0.1", days=2):
    """NAME.pem and NAME.key, signed by the CA, valid for localhost; usage: "serverAuth" or "clientAuth" alone; names: more
    subject alternative names; own: instead of those of localhost; days: negative if it has expired."""
    directory = pathlib.Path(directory)
    (directory / "extensions").write_text("subjectAltName=%s%s\n" % (own, names)
                                          + ("extendedKeyUsage=%s\n" % usage if usage else ""))
    openssl(directory, "req", "-new", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", subject,
            "-keyout", name + ".key", "-out", name + ".csr")
    openssl(directory, "x509", "-req", "-in", name + ".csr", "-CA", ca + ".pem", "-CAkey", ca + ".key",
            "-CAcreateserial", "-days", str(days), "-extfile", "extensions", "-out", name + ".pem")


# An agent's certificate with all that `auth.<attr>` can tell, and how the test servers write that.
OWNER_SUBJECT = "/O=Fleet, Inc./CN=agent-7, #1"
OWNER_NAMES = "".join(",DNS:%d.fleet.example" % i for i in range(40)) + (
    ",URI:spiffe://fleet.example/agent-7,URI:http://%s,email:ops@fleet.example" % ("x" * 1100))
OWNER_SHOWN = sorted(["auth.common_name=agent-7, #1", "auth.dns=localhost", "auth.email=ops@fleet.example",
                      "auth.subject=CN=agent-7\\, #1,O=Fleet\\, Inc.", "auth.uri=spiffe://fleet.example/agent-7",
                      *("auth.dns=%d.fleet.example" % i for i in range(27))])


def owner_shown(text):
    return sorted(line for line in text.splitlines() if line.startswith("auth."))
