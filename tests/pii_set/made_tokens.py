# SPDX-License-Identifier: Apache-2.0
"""Tokens of vendors in the forms that they document, JSON Web Tokens, and what stands behind `Bearer`, `Basic`, `password=`
and in the userinfo and query of URLs. All are drawn, and put together from pieces: no such token stands in this file."""
import base64
import json

from pii_set import fill
from pii_set.around import must, place

# Name -> form. Each kind is one row of what "access keys" are.
VENDORS = {
    "aws": "AKIA{base32:16}", "aws session": "ASIA{base32:16}", "google api": "AIza{url64:35}", "google oauth": "ya29.{url64:60}",
    "google client": "GOCSPX-{url64:28}", "github": "gh" "p_{alnum:36}", "github oauth": "gh" "o_{alnum:36}",
    "github app": "gh" "s_{alnum:36}", "github fine": "github_" "pat_{alnum:22}_{alnum:59}", "gitlab": "gl" "pat-{url64:20}",
    "npm": "np" "m_{alnum:36}", "slack bot": "xox" "b-{digit:12}-{digit:12}-{alnum:24}", "slack user": "xox" "p-{digit:11}-{digit:11}-{digit:12}-{hex:32}",
    "slack app": "xap" "p-1-A{UPNUM:10}-{digit:13}-{hex:64}", "stripe": "sk_" "live_{alnum:24}", "stripe restricted": "rk_" "live_{alnum:24}",
    "stripe test": "sk_" "test_{alnum:24}", "stripe webhook": "whs" "ec_{alnum:32}", "sendgrid": "S" "G.{url64:22}.{url64:43}",
    "openai": "sk-" "proj-{url64:48}", "anthropic": "sk-" "ant-api03-{url64:93}AA", "grafana": "gl" "sa_{alnum:32}_{hex:8}",
    "grafana cloud": "gl" "c_{alnum:60}", "hugging face": "h" "f_{letter:34}", "digitalocean": "do" "p_v1_{hex:64}",
    "digitalocean oauth": "do" "o_v1_{hex:64}", "pypi": "py" "pi-AgEIcHlwaS5vcmc{url64:80}", "docker": "dck" "r_pat_{url64:27}",
    "vault": "hv" "s.{url64:90}", "vault batch": "hv" "b.{url64:138}", "shopify": "shp" "at_{hex:32}", "shopify secret": "shp" "ss_{hex:32}",
    "databricks": "da" "pi{hex:32}", "twilio": "S" "K{hex:32}", "atlassian": "ATA" "TT3xFfGF0{url64:160}={HEX:8}",
    "linear": "lin_" "api_{alnum:40}",
}
HOLDERS = ("%s", "%s", "key %s used", "using '%s'", '{"key":"%s"}', "X-Api-Key: %s", "[%s]", "curl -H 'X-Auth: %s' https://api.example.com/v1",
           "env K=%s ./run", "/usr/bin/agent --credential %s", "/usr/bin/agent --credential=%s", "http client (%s)", "denied: %s,",
           "deploy with %s failed: 403", "https://api.example.com/hook/%s", "https://api.example.com/hook?‹key=%s&v=2›",
           "export K=%s; ./run", "<string>%s</string>", "login:%s", "login -p %s")
AZURE = ("DefaultEndpointsProtocol=https;AccountName=store;Account" "Key=%s;EndpointSuffix=core.example.net",
         "Endpoint=sb://bus.example.net/;SharedAccessKeyName=send;SharedAccess" "Key=%s", "Account" "Key=%s")


def held(draw, marked):
    role = "mapping" if draw.random() < 0.15 else "value"
    return role, draw.choice(HOLDERS) % marked


def vendor(name, form):
    def rule(draw):
        return held(draw, must(fill(form, draw)))
    rule.__name__ = name
    return rule


def azure(draw):
    return "value", draw.choice(AZURE) % must(fill("{base64:86}==", draw))


def azure_secret(draw):
    return held(draw, must(fill("{alnum:3}{digit:1}Q~{url64:34}", draw)))


def slack_webhook(draw):
    """The whole URL is the credential."""
    return "value", draw.choice(("%s", "POST %s 404", "notify=%s", "curl -X POST %s")) % fill(
        "‹https://hooks.slack.com/services/T{UPNUM:10}/B{UPNUM:10}/«{alnum:24}»›", draw)


def pem(draw):
    kind = draw.choice(("", "RSA ", "EC ", "OPENSSH ", "ENCRYPTED "))
    front = draw.choice(("", "key:\n", "cert and key "))
    return "value", front + fill("‹-----BEGIN %sPRIVATE " "KEY-----\n«{base64:64}\n{base64:64}\n{base64:40}»\n-----END %sPRIVATE " "KEY-----›"
                                 % (kind, kind), draw)


def pem_encoded(draw):
    """In a form or a URL."""
    kind, gap = draw.choice(("", "RSA ", "EC ", "OPENSSH ")), draw.choice(("+", "%20"))
    front = draw.choice(("", "key=", "tls.key%3D", "https://example.com/import#key="))
    return "value", front + fill("‹%s%%0A«{alnum:64}%%0A{alnum:40}»›" % ("-----BEGIN %sPRIVATE " "KEY-----" % kind).replace(" ", gap), draw)


# ---- JSON Web Tokens

def part(value):
    return base64.urlsafe_b64encode(json.dumps(value, separators=(",", ":")).encode()).rstrip(b"=").decode()


def jwt_text(draw):
    head = draw.choice((
        {"alg": "HS256", "typ": "JWT"}, {"typ": "JWT", "alg": "RS256"}, {"alg": "ES256", "kid": fill("{hex:16}", draw)},
        {"kid": fill("{alnum:12}", draw), "alg": "RS256", "typ": "at+jwt"}, {"alg": "none"}, {"alg": "EdDSA", "crv": "Ed25519"}))
    body = {"sub": fill("{digit:10}", draw), "iat": draw.randint(1600000000, 1800000000)}
    if draw.random() < 0.5:
        body["scope"] = "read write"
    text = part(head) + "." + part(body)
    return text + draw.choice((".{url64:43}", ".{url64:86}", ".{url64:342}", "", "."))


TOKEN_PLACES = ("%s", "token %s end", "Authorization: ‹Bearer %s›", "Cookie: sid=%s; theme=dark", '{"jwt":"%s"}', "jwt:%s", "[%s]",
                "https://app.example.com/cb?‹state=1&jwt=%s›", "https://app.example.com/cb#‹jwt=%s›", "ws://app.example.com/socket/%s",
                "verify(%s)", "grpc-metadata: %s,")


def jwt(draw):
    text = fill(jwt_text(draw), draw)
    return "value", draw.choice(TOKEN_PLACES) % must(text)


# ---- Bearer, Basic, passwords

def bearer(draw):
    token = fill(draw.choice(("{alnum:32}", "{url64:40}", "{hex:40}", "{base64:44}==", "mF_9.{alnum:12}-{alnum:8}", "{alnum:20}")), draw)
    return "value", draw.choice(("Authorization: ‹Bearer «%s»›", "authorization: ‹bearer «%s»›", "‹Bearer «%s»›", '{"Authorization":"‹Bearer «%s»›"}',
                                 "curl -H 'Authorization: ‹Bearer «%s»›' https://api.example.com", "authorization=‹Bearer%%20«%s»›",
                                 "http.request.header.authorization: [‹Bearer «%s»›]", "-H ‹Bearer:«%s»›", "header ‹BEARER «%s»› rejected")) % token


def authorization(draw):
    """Schemes but Bearer and Basic, and none."""
    token = fill(draw.choice(("{hex:40}", "{alnum:32}", "{hex:8}-{hex:4}-{hex:4}-{hex:4}-{hex:12}", "{base64:44}")), draw)
    return "value", draw.choice((
        "Authorization: ‹Token «%s»›", "authorization: ‹token «%s»›", '{"Authorization":"‹Token «%s»›"}', "authorization=‹Token%%20«%s»›",
        "curl -H 'Authorization: ‹ApiKey «%s»›' https://api.example.com", "Authorization: ‹Api-Key «%s»›", "Proxy-Authorization: ‹Negotiate «%s»›",
        "Authorization: ‹GenieKey «%s»›", "authorization: ‹Splunk «%s»›", "Authorization: ‹«%s»›", "curl -H Authorization:‹«%s»› https://api.example.com",
        "http.request.header.authorization: [‹Token «%s»›]", "{'Authorization': '‹Token «%s»›'}")) % token


def basic(draw):
    user = draw.choice(("admin", "svc-report", "alice", "robot", "ci")) + ":" + secret_text(draw)
    token = base64.b64encode(user.encode()).decode()
    return "value", draw.choice(("Authorization: ‹Basic «%s»›", "authorization: ‹basic «%s»›", "‹Basic «%s»›", "Proxy-Authorization: ‹Basic «%s»›",
                                 "curl -H 'Authorization: ‹Basic «%s»›' https://api.example.com", '{"Authorization":"‹Basic «%s»›"}',
                                 "http.request.header.authorization: [‹Basic «%s»›]", "authorization=‹Basic%%20«%s»›")) % token


def secret_text(draw):
    """A password as people and generators make them."""
    return fill(draw.choice(("{alnum:16}", "{alnum:12}", "{hex:32}", "{lower:6}{digit:4}", "{letter:8}{digit:2}", "{alnum:24}",
                             "{lower:5}-{lower:6}-{lower:5}", "{url64:43}", "{base64:40}", "P4{lower:8}")), draw)


QUERY_KEYS = ("password", "passwd", "pwd", "token", "access_token", "api_key", "apikey", "api-key", "secret", "client_secret", "auth_token",
              "refresh_token", "Password", "TOKEN", "apiKey", "accessToken", "private_key", "signature", "session_token")
ENV_KEYS = ("DB_PASSWORD", "PGPASSWORD", "MYSQL_PWD", "API_TOKEN", "SERVICE_API_KEY", "AWS_SECRET_ACCESS_KEY", "CLIENT_SECRET", "REDIS_PASSWORD",
            "GITHUB_TOKEN", "ENCRYPTION_SECRET")
FLAGS = ("--password", "--token", "--api-key", "--secret", "--client-secret", "--db-password", "--auth-token", "--access-token", "-Dpassword",
         "-Ddb.password", "-Djavax.net.ssl.keyStorePassword", "--api_key", "--passwd")


def assigned_query(draw):
    return "value", draw.choice((
        "https://api.example.com/v1/login?‹user=svc&%s=«%s»›", "https://api.example.com/v1/login?‹%s=«%s»&page=2›", "/login?‹%s=«%s»›",
        "GET /v1/login?‹%s=«%s»› HTTP/1.1", "jdbc:postgresql://db.example.com/shop?‹user=svc&%s=«%s»›", "POST /oauth?‹grant=x&%s=«%s»› 401")) % (
            draw.choice(QUERY_KEYS), secret_text(draw).replace("+", "_").replace("/", "_"))


def assigned_fragment(draw):
    return "value", draw.choice((
        "https://app.example.com/cb#‹%s=«%s»›", "https://app.example.com/cb#‹%s=«%s»&expires_in=3600›", "/cb#‹state=7&%s=«%s»›")) % (
            draw.choice(QUERY_KEYS), secret_text(draw).replace("+", "_").replace("/", "_"))


def assigned_parameter(draw):
    return "value", draw.choice((
        "jdbc:sqlserver://db.example.com:1433;database=shop;‹%s=«%s»›", "Server=db.example.com;Database=shop;‹%s=«%s»›;Timeout=5",
        "/app/cart;‹%s=«%s»›/items", "/app/cart;v=1;‹%s=«%s»›", "a=b;‹%s=«%s»›")) % (
            draw.choice(QUERY_KEYS), secret_text(draw).replace("+", "_").replace("/", "_"))


def assigned_command(draw):
    role = draw.choice(("mapping", "value", "function"))
    return role, draw.choice((
        "/usr/bin/worker ‹{flag}=«{s}»› --verbose", "worker ‹{flag}=«{s}»›", "java ‹{flag}=«{s}»› -jar app.jar", "mysqldump -u root ‹{flag}=«{s}»› shop",
        "env ‹{env}=«{s}»› ./run --verbose", "‹{env}=«{s}»›", "docker run -e ‹{env}=«{s}»› shop:1", "‹{env}=«{s}»› ./run", "sh -c ‹{env}=«{s}»›")).format(
            flag=draw.choice(FLAGS), env=draw.choice(ENV_KEYS), s=secret_text(draw))


def assigned_text(draw):
    return "value", draw.choice((
        "login failed: ‹{k}=«{s}»›", "config ‹{k}=«{s}»›, retries=3", "conn user=svc ‹{k}=«{s}»› host=db.example.com", "[‹{k}=«{s}»›]",
        "‹{k}=«{s}»›")).format(k=draw.choice(QUERY_KEYS), s=secret_text(draw))


COLON_KEYS = ("token", "api_key", "secret", "apiKey", "access_token", "client_secret", "auth_token", "private_key", "signature")


def assigned_colon(draw):
    """As YAML and logs write it."""
    token = fill(draw.choice(("{hex:32}", "{hex:40}", "{alnum:32}", "{url64:43}", "{base64:44}", "{hex:64}", "{alnum:40}")), draw)
    return "value", draw.choice(("‹%s: «%s»›", "  ‹%s: «%s»›\n", "using ‹%s: «%s»›", "{‹%s: «%s»›}", "a: 1, ‹%s: «%s»›, b: 2", "login ok (‹%s: «%s»›)")) % (
        draw.choice(COLON_KEYS), token)


def assigned_header(draw):
    """As curl takes them, without a blank."""
    role = draw.choice(("mapping", "value"))
    return role, draw.choice((
        "curl -H ‹X-Api-Key:«{s}»› https://api.example.com", "curl -H '‹X-Auth-Token:«{s}»›' https://api.example.com", "‹X-Vault-Token:«{s}»›",
        "curl -s -H \"‹apikey:«{s}»›\" https://api.example.com", "curl --header ‹PRIVATE-TOKEN:«{s}»› https://git.example.com", "‹x-api-key:«{s}»›",
        "curl -H‹Api-Key:«{s}»› https://api.example.com", "curl -H '‹apikey: «{s}»›' https://api.example.com")).format(s=secret_text(draw))


def curl_user(draw):
    user = draw.choice(("svc", "admin", "ci-bot", "")) + ":"
    return draw.choice(("mapping", "value")), draw.choice((
        "curl -u ‹{u}«{s}»› https://api.example.com", "curl --user ‹{u}«{s}»› https://api.example.com", "curl -s --user='‹{u}«{s}»›' https://api.example.com",
        "/usr/bin/curl -x proxy:3128 --proxy-user ‹{u}«{s}»› -O https://example.com/x", "curl -U ‹{u}«{s}»› https://example.com",
        "curl -u‹{u}«{s}»› -fsSL https://example.com/x", "sh -c curl -k -u \"‹{u}«{s}»›\" https://example.com",
        '["curl","-u","‹{u}«{s}»›","https://example.com"]')).replace("{u}", user).replace("{s}", secret_text(draw))


def element(draw):
    return "value", draw.choice((
        "<password>‹«%s»›</password>", "<server><id>central</id><password>‹«%s»›</password></server>", "<token>‹«%s»›</token>",
        "<wsse:Password Type=\"PasswordText\">‹«%s»›</wsse:Password>", "<ns2:apiKey>‹«%s»›</ns2:apiKey>", "<client-secret>‹«%s»›</client-secret>",
        "<dbPassword>‹«%s»›</dbPassword>", "<db url=\"x\" ‹password=\"«%s»\"›/>", "<login><user>svc</user><pwd>‹«%s»›</pwd></login>",
        "<secret>‹<![CDATA[«%s»]]>›</secret>")) % secret_text(draw)


def nested(draw):
    """Parameters of Rails and PHP."""
    key = draw.choice(("password", "token", "api_key", "secret", "password_confirmation_token"))
    value = secret_text(draw).replace("+", "_").replace("/", "_")
    return "value", draw.choice((
        "‹user[{k}]=«{s}»›", "POST /login ‹user[{k}]=«{s}»›&page=2", "‹user%5B{k}%5D=«{s}»›&commit=1", "https://example.com/login?‹user%5B{k}%5D=«{s}»›",
        "body=‹user%5B{k}%5D%3D«{s}»›", "‹a[0][{k}]=«{s}»›", "/login?‹user[name]=svc&user[{k}]=«{s}»›", "‹session%5b{k}%5d=«{s}»›")).replace(
            "{k}", key).replace("{s}", value)


SCHEMES = ("postgres", "postgresql", "mysql", "mongodb", "mongodb+srv", "redis", "rediss", "amqp", "amqps", "https", "http", "ftp", "sftp",
           "ldap", "smtp", "clickhouse", "nats", "mssql", "socks5", "s3")


def url_credentials(draw):
    user = draw.choice(("svc", "admin", "app_rw", "root", "shop-user", ""))
    password = fill(draw.choice(("{alnum:12}", "{alnum:20}", "{hex:32}", "{lower:6}%40{digit:3}", "{letter:6}${digit:2}!", "{url64:22}",
                                 "{lower:5}.{digit:4}")), draw)
    url = "%s://‹%s:«%s»›@%s" % (draw.choice(SCHEMES), user, password,
                                 draw.choice(("db.example.com/shop", "db.example.com:5432/shop", "cache:6379/0", "mq.example.net", "localhost:8080/",
                                              "shard-00.example.net:27017,shard-01.example.net:27017/shop")))
    role = draw.choice(("value", "value", "value", "mapping", "function"))
    return role, draw.choice(("%s", "%s", "connect %s failed", "DATABASE_URL=%s", "dsn=%s", "/usr/bin/worker --url %s", "/usr/bin/worker --url=%s",
                              "'%s'", '{"url":"%s"}', "git clone %s", "proxy %s, direct", "pool[%s]")) % url


def odd_credentials(draw):
    """Of databases: with a slash or the like in the password, and as tools of Oracle have them. The host may pass for an e-mail's."""
    password = fill(draw.choice(("{alnum:6}/{alnum:6}", "{letter:4}#{alnum:8}", "{alnum:9}?{alnum:3}", "{base64:24}/")), draw)
    return draw.choice(("value", "mapping")), draw.choice((
        "postgres://‹app:«{p}»@db.example.com›/shop", "DATABASE_URL=postgresql://‹app:«{p}»@localhost›:5432/shop", "redis://‹svc:«{p}»@cache:6379/0›",
        "mongodb+srv://‹root:«{p}»@cluster0.example.net›/x", "amqp://‹svc:«{p}»›@mq", "sqlplus ‹scott/«{t}»›@orcl", "sqlplus -s ‹app/«{t}»›@db",
        "sqlplus -L -S ‹sys/«{t}»›@orcl as sysdba", "jdbc:oracle:thin:‹scott/«{t}»›@db:1521:orcl")).replace("{p}", "x" + password).replace(
            "{t}", fill("{alnum:10}", draw))


# ---- queries

def query_value(draw):
    """A value of a query that is personal by what it is for, though by no grammar."""
    return draw.choice(("alice", "42", fill("{hex:12}", draw), "smith+anderson", "Main%20Street%207", "2024-05-17", "card", "s3cr3t",
                        fill("{alnum:8}", draw), "true", "51.5007,-0.1246", "%D0%BC%D0%B8%D1%80"))


NAMES = ("q", "user", "id", "session", "name", "email", "s", "ref", "utm_source", "patient", "address", "lat", "date", "X-Amz-Signature", "code")


def url_query(draw):
    names = draw.sample(NAMES, draw.randint(1, 3))
    values = [query_value(draw) for _ in names]
    if set(values) == {"true"}:
        values[0] = "42"  # nothing but switches is nobody's
    query = "&".join("%s=«%s»" % pair for pair in zip(names, values))
    return draw.choice(("value", "value", "function", "file")), draw.choice((
        "https://shop.example.com/pay?‹%s›", "http://shop.example.com:8080/a/b?‹%s›", "GET /search?‹%s› HTTP/1.1", "/search?‹%s›", "GET /search?‹%s›",
        "https://shop.example.com?‹%s›", "<a href=\"https://shop.example.com/x?‹%s›\">", "wss://live.example.com/feed?‹%s›", "route /a?‹%s› slow",
        "https://shop.example.com/pay?‹%s›#top", "fetch('/api/items?‹%s›')")) % query


RULES = {
    "access_key": [*((vendor(*row), 10) for row in VENDORS.items()), (azure, 14), (azure_secret, 10), (slack_webhook, 12), (pem, 14), (pem_encoded, 14)],
    "jwt": [(jwt, 140)], "bearer": [(bearer, 120), (authorization, 60)], "basic": [(basic, 110)],
    "secret": [(assigned_query, 70), (assigned_fragment, 40), (assigned_parameter, 40), (assigned_command, 80), (assigned_text, 50), (assigned_colon, 60),
               (assigned_header, 40), (curl_user, 40), (element, 40), (nested, 40)],
    "url_credentials": [(url_credentials, 140), (odd_credentials, 40)], "url_query": [(url_query, 140)],
}
