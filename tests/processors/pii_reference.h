/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_PII_REFERENCE_H
#define TESTS_PROCESSORS_PII_REFERENCE_H

#include "processors/pii_detectors.h"
#include "processors/pii_scan.h"
#include "processors/regex.h"
#include "tests/processors/pii_reference_address.h"
#include "tests/processors/pii_reference_number.h"
#include "tests/processors/pii_reference_secret.h"

/*
 * The detectors once more, as regular expressions and functions that confirm what they match:
 * slower, and written independently of processors/pii_find_*.c. Both must find the same in every
 * text.
 */

/* A user's directory: below the root, or below a mount, container root or export; "/app/home" is a
 * program's own. */
#define HOME_ROOTS \
	"root|rootfs|host|hostfs|hostroot|merged|diff|upper|snapshot|[dD]ata|export|var|usr|mnt|nfs|net" \
	"|private|srv|media|opt|gpfs|lustre|(?:data|disk|vol|nas|fs)[0-9]{1,3}|[a-zA-Z](?:%3[Aa])?" \
	"|(?:Volumes|mnt|media|net|nfs|gpfs|lustre|wsl\\$|wsl\\.localhost)\\/[^\\/]{0,63}[A-Za-z0-9_-]"
#define FILE_HOST \
	"(?:(?<![a-z+-])(?:file|ssh|sftp|scp|nfs|smb|vscode-remote)|(?<![a-z])git\\+ssh)" \
	":\\/\\/[^\\/]{0,63}[A-Za-z0-9_-]"
#define NO_ROUTE(method) "(?<!(?<![A-Za-z0-9_-])" method " )"
#define ROUTES \
	NO_ROUTE("GET") \
	NO_ROUTE("POST") \
	NO_ROUTE("PUT") \
	NO_ROUTE("PATCH") \
	NO_ROUTE("DELETE") \
	NO_ROUTE("HEAD") \
	NO_ROUTE("OPTIONS") \
	NO_ROUTE("TRACE")
#define PAIR "[0-9A-Fa-f]{2}"
#define BEHIND_ESCAPE "(?-i:(?<=%" PAIR "|\\\\[nrt]|\\\\x" PAIR "|\\\\u" PAIR PAIR "))"
#define ALONE "(?:(?<![A-Za-z0-9])|" BEHIND_ESCAPE ")"
#define HOME_FRONT \
	"(?:^|[^A-Za-z0-9_-]" ROUTES "|(?<![A-Za-z0-9_-])-[A-Za-z]|\\/(?:" HOME_ROOTS \
	")|" FILE_HOST "|" BEHIND_ESCAPE ")"
#define NAME_BYTE "[^\\/\\\\\\s:;,\"'<>|*?()\\[\\]{}]"
#define NAME NAME_BYTE "{1,256}"
#define SEGMENT "[^\\/\\\\\\s*]{1,256}"
/* The rest of a header, which is read once, and the next part. */
#define JWT_PARTS "[A-Za-z0-9_-]*+(*SKIP)\\.(?:[A-Za-z0-9_-]*+\\.|(?:eyJ|eyA|ewo)[A-Za-z0-9_-]*+)"
/* two levels: group and project, or a name twice */
#define PROJECT "(" SEGMENT "\\/" SEGMENT ")\\/"
#define HOMES "(?:users|documents and settings|home)"
#define WINDOWS_NAME(group) \
	"[\\\\\\/]{1,4}(?|" group "[^\\\\\\/:*?\"<>|\\r\\n+=;,\\[\\]]{1,64})[\\\\\\/]|" group \
	"[^\\\\\\/\\s:*?\"<>|+=;,\\[\\]]{1,256}))"
#define WINDOWS_USER WINDOWS_NAME("(")
#define NO_MORE(last) "(?!" last HOMES WINDOWS_NAME("(?:") ")"
/* On a share, below `names` folders; the last of two directories of homes counts. */
#define SHARED(names, two, one, last, no_more) \
	"(?i)(?<![\\/\\\\])[\\/\\\\]{" two "}(?:\\?[\\/\\\\]{" one "}(?-i:UNC)[\\/\\\\]{" one \
	"})?(?:" NAME_BYTE "{1,63}[\\/\\\\]{" one "}){" names "}" NAME_BYTE "{1,63}" last \
	"()" HOMES no_more WINDOWS_USER
/* Behind a drive, the directory of homes is no server: a user follows, whatever its name. */
#define NO_DRIVE "(?i)(?!(?<=[a-z]:)[\\\\\\/]{1,4}(?:users|documents and settings)[\\\\\\/])"
#define ON_SHARE(names) SHARED(names, "2", "1", "\\\\", NO_MORE("\\\\"))
#define ON_ESCAPED_SHARE(names) SHARED(names, "4", "2", "[\\/\\\\]\\\\", NO_MORE("[\\/\\\\]\\\\"))
#define ON_DRIVE \
	"(?i)(?:[a-z]:[\\\\\\/]{1,4}|(?-i:(?<!" NAME_BYTE ")HarddiskVolume" NAME_BYTE \
	"{0,18}|%SystemDrive%)\\\\)()(?:users|documents and settings)" WINDOWS_USER
#define ESCAPED_SLASH "%(?:25)*(?:2[Ff]|5[Cc])"
/* Behind a name whose value is secret. */
#define SECRET_KEY(word) "|" word "key|" word "[_-]key"
#define SECRET_KEYS \
	SECRET_KEY("api") \
	SECRET_KEY("access") \
	SECRET_KEY("secret") \
	SECRET_KEY("private") \
	SECRET_KEY("account") \
	SECRET_KEY("master") \
	SECRET_KEY("encryption") \
	SECRET_KEY("subscription") \
	SECRET_KEY("signing") \
	SECRET_KEY("shared") \
	SECRET_KEY(ALONE "auth")
#define SECRET \
	"(?i)(?<=password|passwd|passphrase|secret|(?<!publickey)token" SECRET_KEYS \
	"|secret_key_base|credential|credentials|sessid|sessionid|session[_-]id|signature|" ALONE \
	"pass|" ALONE "pwd|" ALONE "auth|" ALONE "sig)"
/* Up to where another name ends, if nothing but its mark follows. */
#define NAME_QUOTE "(?:\\\\?[\"'])?"
#define UP_TO_NAME(bytes, quote, end) \
	"(" bytes "+?(?=" SECRET quote " *(?:=>|[:=])? *" end ")|" bytes "+)"
#define QUOTED_BY(mark) \
	UP_TO_NAME("(?:[^" mark "\\\\]|\\\\.|\\\\\\z)", NAME_QUOTE, "(?:" mark "|\\z)") \
	"|\\\\" mark UP_TO_NAME("(?:(?!\\\\" mark ").)", NAME_QUOTE, "(?:\\\\" mark "|\\z)")
#define QUOTED "\"" QUOTED_BY("\"") "|'" QUOTED_BY("'")
#define WORD "[^\\s\"'<>&;]"
#define VALUE "(?|" QUOTED "|(?!\\\\?[\"'])" UP_TO_NAME(WORD, "", "(?!" WORD ")") ")"
/* A password as people choose them, and a token as generators draw them. */
#define CHOSEN \
	"((?-i:(?=[a-z0-9])(?=" WORD "*[0-9])|(?=[A-Z])(?=" WORD "*[0-9](?:(?![0-9])" WORD \
	")+[0-9]))" WORD "{8,}(?<!:))"
#define DRAWN_BYTE "[A-Za-z0-9_+\\/~-]"
#define DRAWN_END "(?=[ \\t\\r\\n,;\"')\\]}&\\x00]|\\z)"
#define DRAWN_TOKEN "(?=[A-Za-z0-9_+-])" DRAWN_BYTE "{16,}+={0,2}+" DRAWN_END
#define DRAWN "(" DRAWN_TOKEN ")"
#define PEM_GAP "(?: |\\+|%20)"
#define TOKEN "([A-Za-z0-9._~+\\/=-]{8,}(?:%(?:2[bf]|3d|7e)[A-Za-z0-9._~+\\/=-]*)*)"
/* Behind "authorization": a mark, and what may be around it; then a token that looks drawn, or a
 * scheme and a token. */
#define BLANK "(?:[ \\t]|%20)"
#define AUTHORIZATION \
	"(?i)authorization" NAME_QUOTE "+ {0,4}+(?:%3a|=>|[:=])" BLANK "{0,4}+\\[?+" NAME_QUOTE "+"
#define TWO_PLACES "(?=" DRAWN_BYTE "*[0-9](?:(?![0-9])" DRAWN_BYTE ")+[0-9])"
/* A name in brackets, which may be escaped, is a part of another one. */
#define PART_END "(?:\\]|%(?:25)*5d)"
/* Of a database, without an @ in what another URL has in front of its path; not behind a port. */
#define AUTHORITY "[^\\s?\"'<>\\/\\\\#]"
#define ODD_USERINFO(slashes) \
	"(?<=(?<![a-z+])amqp|(?<![a-z+])amqps|(?<![a-z+])mysql|(?<![a-z+])redis|(?<![a-z+])rediss|" \
	"(?<![a-z+])mssql|(?<![a-z+])mongodb|(?<![a-z])mongodb\\+srv|(?<![a-z+])mariadb|" \
	"(?<![a-z+])postgres|(?<![a-z+])postgresql|(?<![a-z+])sqlserver|(?<![a-z+])clickhouse|" \
	"(?<![a-z+])cockroachdb)" slashes "(?!" AUTHORITY "*@" AUTHORITY ")" \
	"([A-Za-z0-9_.-]{0,64}+:(?![0-9]{1,6}+(?:[,\\/?#]|\\x00|\\z))(?=[A-Za-z0-9])[^\\s\"'<>&;]+)"
#define SPACED_MARK "(?:" NAME_QUOTE " {1,4}:| {1,4}=) {1,4}"
#define DOMAIN_NAME \
	"(?:[A-Za-z0-9\\x80-\\xff][A-Za-z0-9\\x80-\\xff-]{0,62}\\.){1,8}[A-Za-z\\x80-\\xff]{2,24}"
#define WIDE_AT "\\xef\\xbc\\xa0"
#define NARROW "(?!" WIDE_AT ")"
#define IBAN_GROUPS(gap) "(?:" gap "[A-Z0-9]{4}){2,7}(?:" gap "[A-Z0-9]{1,3})?"
#define CARD_GROUPS(gap) \
	"[2-8][0-9]{3}" gap "(?:[0-9]{4}" gap "[0-9]{4}" gap "[0-9]{1,4}(?:(?<=[0-9]{4})" gap \
	"[0-9]{1,3})?|[0-9]{6}" gap "[0-9]{1,5})"
#define MAC(front, gap) \
	front "(?<!(?<![A-Za-z0-9])" PAIR gap ")" PAIR "(?:" gap PAIR "){5}(?:" gap PAIR gap PAIR \
	      ")?"
#define HOME_OF(word) \
	HOME_FRONT "(?|()\\/" word "\\/|\\\\()\\/" word "\\\\\\/)(?:\\/|\\.\\/)*+(" NAME ")"

/* clang-format off */
static const struct reference_rule {
	enum pii_detector detector;
	/* Group 1, if there is one, is the part that is masked. If there are two, the first one
	 * stands at the anchor: what is in front of it may belong to an earlier match. */
	const char *pattern;
	bool (*confirm)(struct view text, struct regex_span *span);
} reference_rules[] = {
	{ PII_EMAIL, "@" DOMAIN_NAME, is_email },
	{ PII_EMAIL, "%(?:25)*40" DOMAIN_NAME, is_email_percent },
	{ PII_EMAIL, "&(?:#0*64|#[xX]0*40|commat);" DOMAIN_NAME, is_email_html },
	{ PII_EMAIL, "\\\\(?:x40|u0040|u\\{40\\}|U00000040)" DOMAIN_NAME, is_email_literal },
	{ PII_EMAIL, WIDE_AT "(?:" NARROW "[A-Za-z0-9\\x80-\\xff](?:" NARROW "[A-Za-z0-9\\x80-\\xff-]){0,62}\\.){1,8}"
		     "(?:" NARROW "[A-Za-z\\x80-\\xff]){2,24}", is_email_narrow },
	{ PII_EMAIL, WIDE_AT "(?:" NARROW "[A-Za-z0-9.\\x80-\\xff-])+", is_email_wide },
	{ PII_IPV4, "[0-9]{1,3}(?:\\.[0-9]{1,3}){3}", is_ipv4 },
	{ PII_IPV4, ALONE "(?i:ip|ec2)-([0-9]{1,3}(?:-[0-9]{1,3}){3})", is_ipv4_host },
	{ PII_IPV6, "::1", is_loopback },
	{ PII_MAC, MAC(ALONE, ":"), is_mac },
	{ PII_MAC, MAC("(?<![A-Za-z0-9])", "-"), is_mac },
	{ PII_MAC, "[0-9A-Fa-f]{4}\\.[0-9A-Fa-f]{4}\\.[0-9A-Fa-f]{4}", is_mac_dotted },
	{ PII_IPV6, "[0-9A-Fa-f]{1,4}(?::[0-9A-Fa-f]{0,4}){2,7}(?:(?:\\.[0-9]{1,3}){3})?", is_ipv6 },
	{ PII_JWT, "ImFsZyI" JWT_PARTS, is_jwt },
	{ PII_JWT, "JhbGci" JWT_PARTS, is_jwt },
	{ PII_JWT, "iYWxnI" JWT_PARTS, is_jwt },
	{ PII_ACCESS_KEY, "(?:AKIA|ASIA|AGPA|AIDA|AROA|AIPA|ANPA|ANVA|ABIA|ACCA|A3T[A-Z0-9])[A-Z0-9]{16}", is_aws },
	{ PII_ACCESS_KEY, "AIza[A-Za-z0-9_-]{35,}" },
	{ PII_ACCESS_KEY, "gh[opsur]_[A-Za-z0-9]{36,}", is_prefix },
	{ PII_ACCESS_KEY, "github_pat_[A-Za-z0-9_]{60,}", is_prefix },
	{ PII_ACCESS_KEY, "npm_[A-Za-z0-9]{36,}", is_prefix },
	{ PII_ACCESS_KEY, "[rs]k_(?:live|test)_[A-Za-z0-9]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "xox[abcdeoprs]-[A-Za-z0-9-]{10,}", is_prefix },
	{ PII_ACCESS_KEY, "gl(?:pat|ptt|cbt|imt|rt|dt|ft|soat|agent)-[A-Za-z0-9_-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "sk-(?:ant|proj|svcacct|admin)-[A-Za-z0-9_-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "sk-[A-Za-z0-9]{48}", is_free },
	{ PII_ACCESS_KEY, "GOCSPX-[A-Za-z0-9_-]{28,}", is_prefix },
	{ PII_ACCESS_KEY, "ya29\\.[A-Za-z0-9_.-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "SG\\.[A-Za-z0-9_-]{22}\\.[A-Za-z0-9_-]{43}", is_prefix },
	{ PII_ACCESS_KEY, "(?:Account|Access)Key=(?=[A-Za-z0-9+\\/]{32})([A-Za-z0-9+\\/]+?(?=(?:Account|Access)Key=)|[A-Za-z0-9+\\/]++={0,2})" },
	{ PII_ACCESS_KEY, "(?<=[A-Za-z0-9_~.-]{3}[0-9])Q~[A-Za-z0-9_~.-]{31,34}", is_azure },
	{ PII_ACCESS_KEY, "-----BEGIN" PEM_GAP "(?:[A-Z]|" PEM_GAP "){0,32}PRIVATE" PEM_GAP "KEY", is_to_end },
	{ PII_ACCESS_KEY, "xapp-[A-Za-z0-9-]{20,}", is_prefix },
	{ PII_ACCESS_KEY, "hooks\\.slack\\.com(?=\\/|\\\\\\/|%2[Ff])(?:[A-Za-z0-9+\\/]|\\\\\\/|%2[Ff])+", is_hook },
	{ PII_ACCESS_KEY, "whsec_[A-Za-z0-9+\\/]{24,}", is_prefix },
	{ PII_ACCESS_KEY, "glsa_[A-Za-z0-9_]{41,}", is_prefix },
	{ PII_ACCESS_KEY, "glc_[A-Za-z0-9+\\/]{32,}", is_prefix },
	{ PII_ACCESS_KEY, "eyJrIjoi[A-Za-z0-9+\\/]{40,}", is_prefix },
	{ PII_ACCESS_KEY, "hf_[A-Za-z0-9]{34,}", is_prefix },
	{ PII_ACCESS_KEY, "do[opr]_v1_[0-9A-Fa-f]{64,}", is_prefix },
	{ PII_ACCESS_KEY, "pypi-AgE[A-Za-z0-9_-]{50,}", is_prefix },
	{ PII_ACCESS_KEY, "dckr_[A-Za-z0-9_-]{31,}", is_prefix },
	{ PII_ACCESS_KEY, "hv[sbr]\\.[A-Za-z0-9_-]{24,}", is_prefix },
	{ PII_ACCESS_KEY, "shp(?:at|ca|pa|ss)_[0-9A-Fa-f]{32,}", is_prefix },
	{ PII_ACCESS_KEY, "dapi[0-9A-Fa-f]{32}(?![A-Za-z0-9])(?:-[0-9])?", is_prefix },
	{ PII_ACCESS_KEY, "(?:SK|AC)[0-9A-Fa-f]{32}", is_free },
	{ PII_ACCESS_KEY, "AT[AC]TT3[A-Za-z0-9_-]{40,}(?:=[0-9A-Fa-f]{8}(?![A-Za-z0-9]))?", is_prefix },
	{ PII_ACCESS_KEY, "ATBB[A-Za-z0-9]{28,}", is_prefix },
	{ PII_ACCESS_KEY, "lin_api_[A-Za-z0-9]{40,}", is_prefix },
	{ PII_ACCESS_KEY, "lin_oauth_[0-9A-Fa-f]{64,}", is_prefix },
	{ PII_CARD, CARD_GROUPS("\\."), is_card_groups },
	{ PII_CARD, CARD_GROUPS("_"), is_card_groups },
	{ PII_CARD, CARD_GROUPS("\\+"), is_card_groups },
	{ PII_CARD, CARD_GROUPS("%20"), is_card_groups },
	{ PII_IBAN, "[A-Z]{2}[0-9]{2}(?:[A-Z0-9]{11,28}|" IBAN_GROUPS(" ") "|" IBAN_GROUPS("-") "|" IBAN_GROUPS("\\+") "|" IBAN_GROUPS("%20") ")", is_iban },
	{ PII_CARD, "(?:3[0-9]{3}[ -]?[0-9]{6}[ -]?[0-9]{4,5}(?![A-Za-z0-9])|[2-8][0-9]{3}(?:[ "
		    "-]?[0-9]{4}){2}[ -]?[0-9]{1,4}(?:[ -]?[0-9]{1,3})?)", is_card },
	{ PII_SSN, "[0-9]{3}-[0-9]{2}-[0-9]{4}", is_ssn },
	{ PII_PHONE, "\\+[1-9][0-9]{0,2}(?:[ .()-]{0,2}[0-9]){6,14}", is_phone },
	{ PII_PHONE, "(?:\\([2-9][0-9]{2}\\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. "
		     "][0-9]{4}", is_phone },
	{ PII_PHONE, "%2[Bb][1-9][0-9]{0,2}(?:(?:[ .()+-]|%2[089]){0,2}[0-9]){6,14}", is_phone },
	{ PII_PHONE, "(?<![+-])1-(?:\\([2-9][0-9]{2}\\) ?|[2-9][0-9]{2}[-. ])[2-9][0-9]{2}[-. ][0-9]{4}", is_phone },
	{ PII_PAN, "[A-Z]{3}[ABCFGHJLPT][A-Z][0-9]{4}[A-Z]", is_alone },
	{ PII_AADHAAR, "[2-9][0-9]{3}(?:[0-9]{8}| [0-9]{4} "
		       "[0-9]{4}|-[0-9]{4}-[0-9]{4})", is_aadhaar },
	{ PII_UUID, "[0-9A-Fa-f]{8}-(?:[0-9A-Fa-f]{4}-){3}[0-9A-Fa-f]{12}", is_alone },
	{ PII_BEARER, "(?i)bearer(?:[ \\t=+]|:(?!:)|%20){1,8}" TOKEN, is_bearer },
	{ PII_BEARER, AUTHORIZATION "(?|" TWO_PLACES DRAWN "|(?!" TWO_PLACES DRAWN_TOKEN ")(?!bearer|basic)[A-Za-z0-9-]{0,32}+(?|"
	  "(?<=token|key)" BLANK "{1,4}+" TOKEN "|(?<!token|key)" BLANK "{1,4}+" TWO_PLACES DRAWN "))", is_bearer },
	{ PII_BASIC, "(?i)basic(?:\\+|(?:[ \\t]|%20){1,8})([A-Za-z0-9+\\/]{8,4096}={0,2})", is_basic },
	{ PII_CREDENTIAL, "(?s)" SECRET "(?<!(?<![_-])pwd(?==[.\\/\\\\]))=(?![=(~])" VALUE, is_assigned },
	{ PII_CREDENTIAL, SECRET "%(?:25)*3D((?:(?!%(?:25)*26)[^\\s\"'<>&;])+)" },
	{ PII_CREDENTIAL, "(?s)" SECRET "=> {0,4}(?|" QUOTED ")" },
	{ PII_CREDENTIAL, "(?s)" SECRET PART_END "=(?![=(~])" VALUE, is_part },
	{ PII_CREDENTIAL, SECRET PART_END "%(?:25)*3D((?:(?!%(?:25)*26)[^\\s\"'<>&;])+)", is_escaped_part },
	{ PII_CREDENTIAL, "(?s)" SECRET PART_END "=> {0,4}(?|" QUOTED ")", is_part },
	{ PII_CREDENTIAL, "(?s)" SECRET "\\\\?[\"'](?::|=>) {0,4}(?|" QUOTED ")" },
	{ PII_CREDENTIAL, "(?s)" SECRET "(?:" NAME_QUOTE " {1,4}(?:: {1,4}|=> {0,4})| {1,4}= {1,4})(?|" QUOTED ")" },
	{ PII_CREDENTIAL, "(?i)(?<=password|passwd|passphrase)" SPACED_MARK CHOSEN },
	{ PII_CREDENTIAL, SECRET "(?<!password|passwd|passphrase)" SPACED_MARK DRAWN, is_random },
	{ PII_CREDENTIAL, "(?s)" SECRET " {1,4}(?![ -])" VALUE, is_option },
	{ PII_CREDENTIAL, "(?s)" SECRET ":(?!:) {0,4}(?! )" VALUE, is_header },
	{ PII_CREDENTIAL, SECRET "(?<!password|passwd|passphrase): {1,4}" DRAWN, is_drawn },
	{ PII_CREDENTIAL, "(?i)(?<=password|passwd|passphrase): {1,4}" CHOSEN, is_no_header },
	{ PII_CREDENTIAL, "<\\\\?\\/[^\\s\"'<>#]{0,64}+" SECRET ">", is_element },
	{ PII_CREDENTIAL, "(?s)(?:(?<=-|--proxy)-user(?!-)|(?<=[ \\t\"',[])(?!-user)-[uU])[ =,\"'\\\\]{0,6}+(.)", is_of_curl },
	{ PII_CREDENTIAL, "(?s)(?<=[ \\t\"',[])-[BGIJLNORSafgijklnpqsv]{1,7}[uU](?=[ =])[ =,\"'\\\\]{0,6}+(.)", is_of_curl },
	{ PII_URL_CREDENTIALS, ":\\\\\\/\\\\\\/([^\\s?\"'<>\\/\\\\#]+)@(?=[^\\s?\"'<>\\/\\\\#])", is_userinfo },
	{ PII_URL_CREDENTIALS, ":\\/\\/([^\\s?\"'<>\\/\\\\#]+)@(?=[^\\s?\"'<>\\/\\\\#])", is_userinfo },
	{ PII_URL_CREDENTIALS, ODD_USERINFO(":\\/\\/"), is_odd_userinfo },
	{ PII_URL_CREDENTIALS, ODD_USERINFO(":\\\\\\/\\\\\\/"), is_odd_userinfo },
	{ PII_URL_CREDENTIALS, "sqlplus (?:-[A-Za-z]{0,8}+ ){0,4}+" NAME_QUOTE "+((?=[A-Za-z0-9])[A-Za-z0-9_.-]{1,64}+\\/[^\\s\"'<>&;@]+)" },
	{ PII_URL_CREDENTIALS, "oracle:thin:((?=[A-Za-z0-9])[A-Za-z0-9_.-]{1,64}+\\/[^\\s\"'<>&;@]+)(?=@)" },
	{ PII_HOME_DIRECTORY, HOME_OF("home[0-9]{0,2}"), is_home },
	{ PII_HOME_DIRECTORY, HOME_OF("Users"), is_users },
	{ PII_HOME_DIRECTORY, NO_DRIVE ON_SHARE("0"), is_windows },
	{ PII_HOME_DIRECTORY, ON_SHARE("1"), is_windows },
	{ PII_HOME_DIRECTORY, SHARED("2", "2", "1", "\\\\", ""), is_windows },
	{ PII_HOME_DIRECTORY, NO_DRIVE ON_ESCAPED_SHARE("0"), is_windows },
	{ PII_HOME_DIRECTORY, ON_ESCAPED_SHARE("1"), is_windows },
	{ PII_HOME_DIRECTORY, SHARED("2", "4", "2", "[\\/\\\\]\\\\", ""), is_windows },
	{ PII_HOME_DIRECTORY, ON_DRIVE, is_windows },
	{ PII_HOME_DIRECTORY, "(?:(?<![A-Za-z0-9_.-])|" BEHIND_ESCAPE ")" ESCAPED_SLASH "(?:home|[Uu]sers)" ESCAPED_SLASH
	  "((?:[A-Za-z0-9_.~\\x80-\\xff-]|%20|%[89A-Fa-f][0-9A-Fa-f]){1,64})" },
	{ PII_URL_QUERY, "\\?(?!\\.)([A-Za-z0-9_.\\[\\]%-]{1,64}=[^\\s\"'<>#]+)", is_query },
	{ PII_URL_QUERY, "(?<!webpack)(?<!webpack-internal):\\/\\/[^\\s?\"'<>]++(*SKIP)\\?([^\\s\"'<>#]+)", is_query },
	{ PII_WORKSPACE, "(?<![A-Za-z0-9_.-])\\/builds\\/" PROJECT },
	{ PII_WORKSPACE, "(?|(\\/)(?:_work\\/(?!_work\\/)|__w\\/(?!__w\\/))" PROJECT
	  "|(\\\\)(?:_work\\\\(?!_work\\\\)|__w\\\\(?!__w\\\\))(" SEGMENT "[\\\\\\/]" SEGMENT ")[\\\\\\/])" },
	{ PII_WORKSPACE, "\\/(?:home|Users)\\/(?:(?:runner|vsts)\\/" "work|travis\\/build|gitlab-runner\\/builds)\\/" PROJECT },
	{ PII_WORKSPACE, "\\/buildkite-agent\\/builds\\/(?!buildkite-agent\\/builds\\/)" PROJECT },
	{ PII_WORKSPACE, "(?:jenkins[A-Za-z0-9_-]{0,32}|\\/agent)()\\/workspace\\/(" SEGMENT ")\\/" },
	{ PII_WORKSPACE, "\\/(?:buildAgent|agent)\\/()work\\/(" SEGMENT ")\\/" },
	{ PII_WORKSPACE, "\\/_bazel_(" SEGMENT "(?:\\/[0-9a-f]{32})?)" },
	{ PII_WORKSPACE, "\\/go-build([0-9]{4,20})" },
	{ PII_WORKSPACE, "[A-Za-z]:()[\\\\\\/]a[\\\\\\/](" SEGMENT "[\\\\\\/]" SEGMENT ")[\\\\\\/]" },
};
/* clang-format on */

#define REFERENCE_RULES (sizeof reference_rules / sizeof *reference_rules)
#define REFERENCE_PARTS 512

struct reference {
	struct regex *patterns[REFERENCE_RULES];
	struct regex_memory *memory;
	size_t count, added;
	bool overflowed; /* more hits than REFERENCE_PARTS, or the engine gave up */
	struct reference_part {
		size_t start, end;
		bool name;
	} parts[REFERENCE_PARTS];
};

static bool reference_open(struct reference *r)
{
	r->memory = regex_memory_new();
	for (size_t i = 0; i < REFERENCE_RULES; i++) {
		r->patterns[i] = regex_new(reference_rules[i].pattern, REGEX_BYTES, NULL);
		if (!r->patterns[i])
			return false;
	}
	return true;
}

static inline void reference_close(struct reference *r)
{
	for (size_t i = 0; i < REFERENCE_RULES; i++)
		regex_unref(&r->patterns[i]);
	regex_memory_unref(&r->memory);
}

/* Whole characters, and joined with what overlaps. */
static void reference_add(struct reference *r, struct view text, struct reference_part part)
{
	while (part.start && (text.at[part.start] & 0xc0) == 0x80)
		part.start--;
	while (part.end < text.len && (text.at[part.end] & 0xc0) == 0x80)
		part.end++;
	for (size_t i = 0; i < r->count; i++) {
		struct reference_part other = r->parts[i];
		if (part.start < other.end && other.start < part.end) {
			part.start = part.start < other.start ? part.start : other.start;
			part.end = part.end > other.end ? part.end : other.end;
			part.name &= other.name;
			r->parts[i] = r->parts[--r->count];
			i = (size_t)-1;
		}
	}
	r->overflowed |= ++r->added > REFERENCE_PARTS;
	if (!r->overflowed)
		r->parts[r->count++] = part;
}

static bool reference_run(struct reference *r, size_t index, struct view text)
{
	const struct reference_rule *rule = &reference_rules[index];
	bool found = false;
	for (size_t from = 0, last = 0; from < text.len;) {
		enum regex_result result = regex_find(r->patterns[index], r->memory, text, from);
		r->overflowed |= result == REGEX_ERROR;
		if (result != REGEX_YES)
			break;
		struct regex_span whole = regex_group(r->memory, 0), span = whole,
				  first = regex_group(r->memory, 1),
				  second = regex_group(r->memory, 2);
		size_t anchor = second.set ? first.start : whole.start;
		if (first.set)
			span = second.set ? second : first;
		bool hit = span.end > span.start && anchor >= last &&
			   (!rule->confirm || rule->confirm(text, &span));
		if (hit)
			reference_add(r, text,
				      (struct reference_part){
					      span.start, span.end,
					      rule->detector == PII_HOME_DIRECTORY ||
						      rule->detector == PII_WORKSPACE });
		found |= hit;
		last = hit ? span.end : last;
		/* What was no hit may hide one that begins a little later. */
		size_t next = hit && !second.set ? span.end : whole.start + 1;
		from = next > from ? next : from + 1;
	}
	return found;
}

/*
 * What becomes of a text under `mask`: the detectors that hit, and the masked text in out, which is
 * empty without a hit. Worth nothing if r->overflowed.
 */
static uint64_t reference_mask(struct reference *r, const uint8_t *actions, struct view text,
			       struct bytes *out)
{
	uint64_t hits = 0;
	size_t at = 0;
	r->count = r->added = 0;
	r->overflowed = false;
	out->len = 0;
	for (size_t i = 0; i < REFERENCE_RULES; i++)
		if (actions[reference_rules[i].detector] != PII_LEAVE && reference_run(r, i, text))
			hits |= 1ull << reference_rules[i].detector;
	while (r->count) {
		size_t first = 0;
		for (size_t i = 1; i < r->count; i++)
			first = r->parts[i].start < r->parts[first].start ? i : first;
		bytes_add(out, text.at + at, r->parts[first].start - at);
		bytes_add_text(out, r->parts[first].name ? PII_NAME_MASK : PII_MASK_TEXT);
		at = r->parts[first].end;
		r->parts[first] = r->parts[--r->count];
	}
	if (hits)
		bytes_add(out, text.at + at, text.len - at);
	return hits;
}

#endif
