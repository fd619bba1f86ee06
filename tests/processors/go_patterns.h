/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_PROCESSORS_GO_PATTERNS_H
#define TESTS_PROCESSORS_GO_PATTERNS_H

/* Patterns of Go, a string, and the string with # for each match, as Go's
 * regexp.ReplaceAllStringFunc returns it. */
static const struct go_sample {
	const char *pattern, *text, *replaced;
} go_samples[] = {
	/* what configurations of the Collector have */
	{ "4[0-9]{12}(?:[0-9]{3})?", "id 4111111111111111, 4222222222222", "id #, #" },
	{ "(5[1-5][0-9]{14})", "5500005555555559!", "#!" },
	{ "[a-zA-Z0-9._%+-]+@[a-zA-Z0-9.-]+\\.[a-zA-Z]{2,}", "to a.b@c.example, d@e", "to #, d@e" },
	{ "\\b[A-Za-z0-9._%+-]+@[A-Za-z0-9.-]+\\.[A-Z|a-z]{2,}\\b", "..ab@c.de; x.y@z.org.",
	  "..#; #." },
	{ "([a-zA-Z0-9_\\-\\.]+)@([a-zA-Z0-9_\\-\\.]+)\\.([a-zA-Z]{2,5})", "me@host.example",
	  "#le" },
	{ "\\b\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\.\\d{1,3}\\b", "10.1.2.3 1.2.3.4567",
	  "# 1.2.3.4567" },
	{ "\\b\\d{3}-\\d{2}-\\d{4}\\b", "123-45-6789 0123-45-6789", "# 0123-45-6789" },
	{ ".*token.*", "a\nmy token is\nb", "a\n#\nb" },
	{ ".+@mycompany.com", "a@mycompany.com b@mycompanyxcom", "#" },
	{ "(?i)password=\\S+", "x PassWord=ab;c d", "x # d" },
	{ "eyJ[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+\\.[A-Za-z0-9_-]+", "Bearer eyJhbGci.eyJzdWIi.sig",
	  "Bearer #" },
	{ "^(user|pass)$", "user", "#" },
	{ ".*", "", "#" },
	{ ".*", "abc", "#" },
	{ ".*", "a\nb\n", "#\n#\n#" },
	/* empty matches */
	{ "x*", "axxb", "#a#b#" },
	{ "", "\xc3\xa9z", "#\xc3\xa9#z#" },
	{ "b*?", "ab", "#a#b#" },
	{ "a|b*", "xab", "#x##" },
	/* ends and lines */
	{ "a$", "a\n", "a\n" },
	{ "(?m)a$", "a\na", "#\n#" },
	{ "(?m)^", "a\n", "#a\n#" },
	{ "\\Aa\\z", "a\n", "a\n" },
	{ ".", "\r\n\xe2\x80\xa8", "#\n#" },
	{ "(?s).", "\n", "#" },
	/* what both read, and read differently */
	{ "\\s", " \t\v\f\r\n", "##\v###" },
	{ "\\S+", "a\vb c", "# #" },
	{ "[\\s]", " \v", "#\v" },
	{ "[^\\s]+", "a\vb c", "# #" },
	{ "[\\S ]+", "a\vb c\nd", "#\n#" },
	{ "\\v", "\v\n\f", "#\n\f" },
	{ "[\\v]", "\v\n", "#\n" },
	{ "\\101\\x42\\x{43}", "ABC", "#" },
	{ "\\07", "\a7", "#7" },
	{ "[\\101-\\103]+", "xABCD", "x#D" },
	{ "a{,2}", "aa{,2}", "a#" },
	{ "a{x}", "a{x}", "#" },
	{ "\\p{Greek}+", "x\xce\xb1\xce\xb2\xcd\x85y", "x#\xcd\x85y" },
	{ "\\p{^Lu}", "Aa", "A#" },
	{ "\\PL\\pL", "1a", "#" },
	{ "[\\p{Lu}\\d]+", "aB1c", "a#c" },
	{ "\\Qa.b*\\E+", "a.b** a.bb", "# a.bb" },
	{ "\\Q.", "a.", "a#" },
	{ "[]a]+", "x]a", "x#" },
	{ "[^]a]+", "x]a", "#]a" },
	{ "[[a]+", "[a", "#" },
	{ "[[:word:]-]+", "a-b c", "# #" },
	{ "[[:^digit:]]+", "12ab", "12#" },
	{ "(?P<n>a)(?<m>b)", "ab", "#" },
	{ "(?U)a+", "aa", "##" },
	{ "(?i:A)b", "ab aB", "# aB" },
	{ "(?i)stra\xc3\x9f"
	  "e",
	  "STRA\xc3\x9f"
	  "E",
	  "#" },
	{ "\\w+",
	  "\xc3\xa9"
	  "a_1",
	  "\xc3\xa9#" },
	{ "\\_\\-\\ ", "_- ", "#" },
	/* a match begins where its run begins, or where the search does */
	{ "a+b", "aaab ab b", "# # b" },
	{ "a*b", "aab b", "# #" },
	{ "a+?b", "aab", "#" },
	{ ".*?x", "axbx\ncx", "##\n#" },
	{ "(?s).*?x", "a\nxb", "#b" },
	{ "a+b|c", "aac aab", "aa# #" },
	{ "(a+b|a)c", "aabc ac", "# #" },
	{ "((?:a+)-)+b", "aa-a-b", "#" },
	{ "(a+)?b", "aab b", "# #" },
	{ "(?:[a-z]+){2}1", "ab1", "#" },
	{ "\\d{2,}-", "1234- 1-", "# 1-" },
	{ "(?i)[a-c]+D", "xABCd", "x#" },
	{ "\\b[a-z.]+@", "..a.b@ .c@", "..# .#" },
	{ "\\b[a-z.]+@|\\.\\.", "..a.b@", "##" },
	{ "\\b[a-z]+(?i)D", "abD xD", "# #" },
	{ "\\bx*y", "xxy y", "# #" },
	{ "\\b(a+)b", "aab", "#" },
	{ "\\Ba+b", "aab", "a#" },
	{ "^a+b", "aabaab", "#aab" },
	{ "(?i)\\ba+b", "AAB", "#" },
	{ "[a-z]+1|[a-z]+2", "ab2 cd1", "# #" },
};

/* Go rejects these, and so do we. */
static const char *const not_go[] = {
	"(?=a)", "(?!a)",  "(?<=a)b", "(?<!a)b", "(?>a)", "a++",    "a*+",          "a?+",
	"a**",   "(a)\\1", "\\Z",     "\\G",     "\\K",   "\\h",    "\\R",          "\\X",
	"\\cA",  "(?#a)",  "(?x)a",   "(?R)",    "(?1)",  "(*LF)a", "*a",           "a|*",
	"(*a)",  "(?P=n)", "(?P>n)",  "\\e",     "\\N",   "\\k<n>", "\\g1",         "a{2}{3}",
	"(a",    "a)",     "[a",      "\\",      "\\x1",  "\\x{}",  "\\p{No such}", "\\p",
	"[z-a]", "{1}a",   "a{3,2}",  "\\8",
};

#endif
