/* SPDX-License-Identifier: Apache-2.0 */
#include "profile/stores/series_name.h"

static struct view front(struct view v, size_t len)
{
	return (struct view){ v.at, len };
}

static struct view rest(struct view v, size_t from)
{
	return (struct view){ v.at + from, v.len - from };
}

static struct view trimmed(struct view v)
{
	while (v.len && (*v.at == ' ' || *v.at == '\t'))
		v = rest(v, 1);
	while (v.len && (v.at[v.len - 1] == ' ' || v.at[v.len - 1] == '\t'))
		v.len--;
	return v;
}

/* The length of the part before the first of the two characters; all of it if there is none. */
static size_t until(struct view v, char a, char b)
{
	size_t i = 0;
	while (i < v.len && v.at[i] != a && v.at[i] != b)
		i++;
	return i;
}

static bool consists_of(struct view text, const char *others)
{
	for (size_t i = 0; i < text.len; i++) {
		uint8_t c = text.at[i], lower = c | 0x20;
		if (!(lower >= 'a' && lower <= 'z') && !(c >= '0' && c <= '9') &&
		    !(c && strchr(others, c)))
			return false;
	}
	return true;
}

static bool check_service(struct view service, struct error *err)
{
	if (!service.len)
		return error_set(err, ERROR_INVALID, "name: the service name is missing");
	return consists_of(service, "_.-/") ||
	       error_set(err, ERROR_INVALID,
			 "name: the service name may contain only letters, digits, '_', '.', '-' "
			 "and '/'");
}

static bool add_label(struct label_set *set, const struct label_limits *limits,
		      struct label_text label, struct view *service, struct error *err)
{
	if (!consists_of(label.name, "_."))
		return error_set(err, ERROR_INVALID,
				 "name: label %u: its name may contain only letters, digits, '_' "
				 "and '.'",
				 set->seen + 1);
	if (view_is(label.name, "__name__")) {
		*service = label.value;
		return true;
	}
	/* With too many labels, the name will be rejected anyway. */
	bool full = set->seen > set->count;
	struct label_text *earlier = full ? NULL : label_set_find(set, label.name);
	if (!earlier)
		return label_set_add(set, limits, label, err) || error_prefix(err, "name");
	if (!label_set_fits(limits, label, set->seen + 1, err))
		return error_prefix(err, "name");
	*earlier = label;
	return true;
}

/* One `key=value` and what ends it: `,` or `}`. */
static bool take_label(struct view *left, struct label_set *set, const struct label_limits *limits,
		       struct view *service, struct error *err)
{
	size_t end = until(*left, ',', '}');
	if (end == left->len)
		return error_set(err, ERROR_INVALID, "name: the closing brace is missing");
	struct view pair = front(*left, end);
	bool last = left->at[end] == '}';
	*left = last ? rest(*left, end) : rest(*left, end + 1);
	if (!trimmed(pair).len)
		return true;
	size_t equals = until(pair, '=', '=');
	if (equals == pair.len)
		return error_set(err, ERROR_INVALID, "name: label %u has no '='", set->seen + 1);
	struct label_text label = { trimmed(front(pair, equals)), trimmed(rest(pair, equals + 1)) };
	return add_label(set, limits, label, service, err);
}

bool series_name_parse(struct view name, const struct label_limits *limits, struct view *service,
		       struct label_set *set, struct error *err)
{
	size_t brace = until(name, '{', '{');
	struct view left = rest(name, brace);
	label_set_clear(set);
	*service = trimmed(front(name, brace));
	if (left.len) {
		left = rest(left, 1);
		while (!left.len || *left.at != '}')
			if (!take_label(&left, set, limits, service, err))
				return false;
		if (trimmed(rest(left, 1)).len)
			return error_set(err, ERROR_INVALID,
					 "name: there are characters behind the closing brace");
	}
	return check_service(*service, err) &&
	       (label_set_check(set, limits, err) || error_prefix(err, "name"));
}
