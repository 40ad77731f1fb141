"""The cases of make_conformance.py."""

CONTEXT = {
    "n": 7, "neg": -7, "f": 2.5, "s": "Hello, World", "empty": "", "none": None, "yes": True, "no": False,
    "uni": "Größe naïve 你好 🙂 ΑΣ", "blank": "  \t pad \n ", "lines": "one\ntwo\n\nthree\n",
    "words": ["banana", "Apple", "cherry", "apple"], "nums": [3, 1, 2, 3.5, -1], "nested": [[1, [2, 3]], [], [4]],
    "d": {"b": 2, "a": 1, "C": 3, "items": "shadow"}, "deep": {"x": {"y": [{"z": "end"}]}},
    "users": [{"name": "Bob", "age": 30, "role": {"id": 2}}, {"name": "ann", "age": 25, "role": {"id": 1}},
              {"name": "Cid", "role": {"id": 2}, "age": 30}],
    "messages": [{"role": "system", "content": "Be brief."}, {"role": "user", "content": "Hi"},
                 {"role": "assistant", "content": None, "tool_calls": [
                     {"id": "c1", "function": {"name": "f", "arguments": {"q": "é\"<>&'", "k": [1, 2.0, None, True]}}}]}],
    "esc": "a\"b'c\\d\u2028\x7f<&>", "big": 9223372036854775807,
}

EXPRESSIONS = """
1
-1
+1
- -1
1_000
0x1F
0o17
0b101
1.5
1e3
1.5e-7
1e16
1e15
123456789012345680.0
0.0001
0.00001
-0.0
1e22
5e-324
1.7976931348623157e308
3.14159
100.0
1e100
true
True
none
None
'a'
"a"
'a' 'b' "c"
'\\n\\t\\\\\\'\\x41\\u00e9\\101\\q'
'\\U0001F642'
[]
[1, 2, 3,]
()
(1,)
(1, 2)
1, 2
{}
{'a': 1, 'b': [1, 2]}
{1: 'x', 2.0: 'y', none: 'z', true: 'w'}
{'a': 1, 'a': 2}
{(1, 2): 3}
{[1]: 3}
'it\\'s'
['it\\'s', "say \\"x\\"", 'both\\'"']
['\\n', '\\x00', 'é', '\\u200b', '🙂', '\\x7f', '\\xa0']
1 + 2
1 + 2.5
1 - 2 - 3
2 * 3 + 4
2 + 3 * 4
7 / 2
6 / 2
7 // 2
-7 // 2
7 // -2
7 % 3
-7 % 3
7 % -3
-7 % -3
7.5 % 2
-7.5 % 2
7.5 // 2
-7.5 // 2
5.0 // 0.3
1 / 0
1 // 0
1 % 0
1.0 / 0
2 ** 10
2 ** -1
2 ** 0.5
-2 ** 2
2 ** 3 ** 2
0 ** 0
(-8) ** 3
'a' + 'b'
'a' + 1
1 + 'a'
'ab' * 3
3 * 'ab'
'ab' * -1
[1] * 3
(1, 2) * 2
[1] + [2]
(1,) + (2,)
[1] + (2,)
true + true
true + 1.5
'a' ~ 1 ~ none ~ 2.0 ~ [1]
1 ~ 2
not true
not ''
not not 1
1 and 2
0 and 2
0 or 'x'
'' or none
1 or missing.x
1 == 1.0
1 == true
'1' == 1
1 != 2
[1, 2] == [1, 2]
[1, 2] == (1, 2)
{'a': 1} == {'a': 1.0}
none == none
missing == missing
missing == none
1 < 2
1 < 2 < 3
1 < 3 < 2
3 > 2 >= 2
1 < 'a'
'a' < 'b'
'a' < 'B'
'a' <= 'a'
[1, 2] < [1, 3]
[1, 2] < [1, 2, 0]
(1, 'a') < (1, 'b')
none < 1
1 in [1, 2]
1 not in [1, 2]
'a' in 'abc'
'' in 'abc'
1 in 'abc'
'a' in d
'z' in d
'x' in missing
1 in 5
[1] in [[1]]
'a' if true else 'b'
'a' if false
('a' if false) is defined
'a' if no else 'b' if no else 'c'
'x' if missing else 'y'
s.upper()
s.lower()
s.title()
s.swapcase()
'hello world'.capitalize()
'HELLO'.capitalize()
"they're bill's friends".title()
uni.upper()
uni.lower()
uni.title()
'ß'.upper()
'ŉ'.upper()
'ǆ'.title()
'ΑΣ'.lower()
'İ'.lower()
'straße'.capitalize()
blank.strip()
blank.lstrip()
blank.rstrip()
'xxaxx'.strip('x')
'xyaxy'.strip('yx')
'xxaxx'.lstrip('x')
'xxaxx'.rstrip('x')
'aé'.rstrip('é')
'a'.strip(none)
'a'.strip(1)
s.split()
s.split(', ')
s.split(',', 1)
s.split('o', 1)
s.split(sep='o', maxsplit=1)
'a  b c'.split()
' a  b c '.split(none, 1)
' a  b c '.rsplit(none, 1)
'a,b,c'.rsplit(',', 1)
'a,b,c'.rsplit(',')
''.split()
''.split(',')
'a'.split('')
',a,'.split(',')
'aXbXc'.partition('X')
'aXbXc'.rpartition('X')
'abc'.partition('X')
'abc'.rpartition('X')
lines.splitlines()
lines.splitlines(true)
'a\\r\\nb\\x0bc\\u2028d'.splitlines()
s.startswith('Hell')
s.startswith(('x', 'H'))
s.endswith('World')
s.endswith(('x', 'y'))
s.startswith('ello', 1)
s.startswith('H', 1)
'abc'.endswith('b', 0, 2)
s.startswith(1)
s.replace('l', 'L')
s.replace('l', 'L', 1)
s.replace('', '-')
'é你'.replace('', '.')
s.replace('x', 'y')
s.find('o')
s.find('o', 5)
s.rfind('o')
s.find('z')
s.index('W')
s.index('z')
s.count('l')
s.count('')
'aaaa'.count('aa')
uni.find('好')
uni.find('')
'abc'.find('c', -1)
'abc'.find('', 4)
', '.join(words)
''.join(['a', 1])
'-'.join('abc')
'-'.join({'a': 1, 'b': 2})
'42'.isdigit()
'4²'.isdigit()
'4.2'.isdigit()
''.isdigit()
'٤'.isdigit()
'abc'.isalpha()
'ab1'.isalpha()
'ab1'.isalnum()
' \\t'.isspace()
''.isspace()
'ABC'.isupper()
'AB1'.isupper()
'123'.isupper()
'abc'.islower()
'aBc'.islower()
'Abc Def'.istitle()
'Abc def'.istitle()
'é'.isascii()
''.isascii()
'a_1'.isidentifier()
'1a'.isidentifier()
'½'.isnumeric()
'x'.center(5)
'x'.center(4)
'ab'.center(5, '*')
'x'.ljust(3) ~ '|'
'x'.rjust(3, '.')
'x'.rjust(3, '..')
'42'.zfill(5)
'-42'.zfill(5)
'+4'.zfill(1)
'a\\tb'.expandtabs(4)
'prefix-x'.removeprefix('prefix-')
'x.txt'.removesuffix('.txt')
'x.txt'.removesuffix('')
'{} and {}'.format(1, 'b')
'{0} {1} {0}'.format('a', 'b')
'{x} {y.z}'.format(x=1, y={'z': 2})
'{x[a]} {x[b]}'.format(x=d)
'{:>5}|{:<5}|{:^5}|{:*^5}'.format('a', 'b', 'c', 'd')
'{:05d} {:+d} {:,} {:x} {:#x} {:b} {:o}'.format(42, 42, 1234567, 255, 255, 5, 8)
'{:.2f} {:10.3f} {:e} {:g} {:%}'.format(3.14159, 2.5, 12345.678, 0.00001, 0.25)
'{!r} {!s}'.format('a', 'b')
'{:{}}|'.format('a', 5)
'{{}}'.format()
'{} {}'.format(1)
'{'.format()
'{:d}'.format('a')
'{:.2}'.format('abc')
'{:s}'.format(1)
'{} {} {}'.format(none, [1], true)
'{:5}|'.format(true)
'%s and %s' % (1, 'b')
'%s' % 'a'
'%s' % [1, 2]
'%d%%' % 5
'%d' % 3.9
'%5d|%-5d|%05d' % (1, 2, 3)
'%.2f' % 3.14159
'%5.1f|' % 2.25
'%e' % 12345.678
'%g %g' % (0.00001, 1000000.0)
'%x %X %o' % (255, 255, 8)
'%#x' % 255
'%+d % d' % (1, 2)
'%(a)s-%(b)s' % {'a': 1, 'b': 2}
'%r' % 'a'
'%c%c' % ('a', 66)
'%s' % ()
'%s %s' % ('a',)
'%s' % ('a', 'b')
'%d' % 'a'
'%*d' % (5, 42)
'%.3s' % 'abcdef'
'%s' % none
'%q' % 1
s[0]
s[-1]
s[100]
s[1:4]
s[:3]
s[-3:]
s[::2]
s[::-1]
s[5:1:-1]
s[:-100:-1]
s[1:100]
s[::0]
uni[0:5]
uni[-1]
uni[::-1]
words[0]
words[-1]
words[10]
words[1:]
words[::-1]
words[::2]
words[-2:]
(1, 2, 3)[1:]
nums[5:1]
nums[none:2]
nums['a']
d['a']
d.a
d['zz']
d.zz
d.zz.y
d.items
d['items']
d.get('a')
d.get('zz')
d.get('zz', 'dflt')
d.keys()
d.values()
d.items() | list
d.items()
d.keys() | list
{}.keys()
d.items()[0]
d | length
deep.x.y[0].z
deep['x']['y'][0]['z']
deep.x.y.0.z
deep.q.r
deep.x.y[5].z
users[0].name
users.0.name
n.foo
n.foo.bar
s.foo
none.foo
none.foo.bar
none[0]
missing
missing.x
missing[0]
missing()
missing | upper
missing | length
missing | list
missing | default('x')
missing + 1
missing ~ 'x'
missing in [1]
missing < 1
-missing
missing | int
missing | tojson
missing | first
missing | join
missing | string
missing | trim
none | default('x')
none | default('x', true)
'' | default('x', true)
'' | d('x')
missing | d
false | default('x', boolean=true)
words.append('x')
words.sort()
d.update({'a': 2})
d.pop('a')
d.clear()
words.index('cherry')
words.index('zz')
words.count('apple')
nums.copy()
d.copy()
(1, 2, 2).count(2)
s.__class__
s['__class__']
[].__class__
missing.__class__
words | join(', ')
words | join
nums | join(', ')
users | join(', ', attribute='name')
[none, true, 1.0, 'x', [1]] | join('|')
words | length
s | length
uni | length
5 | length
words | count
words | first
words | last
[] | first
[] | last
'abc' | first
'abc' | last
{} | first
words | sort
words | sort(reverse=true)
words | sort(case_sensitive=true)
nums | sort
users | sort(attribute='name') | map(attribute='name') | list
users | sort(attribute='age,name') | map(attribute='name') | list
users | sort(attribute='role.id', reverse=true) | map(attribute='name') | list
[1, 'a'] | sort
words | unique | list
words | unique(case_sensitive=true) | list
users | unique(attribute='age') | map(attribute='name') | list
[1, 1.0, true, '1'] | unique | list
words | min
words | max
nums | min
nums | max
[] | min
users | max(attribute='age')
nums | sum
users | sum(attribute='age')
[] | sum
[[1], [2]] | sum(start=[])
['a'] | sum
users | groupby('age')
users | groupby('age') | map('first') | list
users | groupby('role.id') | map(attribute='grouper') | list
users | groupby('zz', default='none') | map(attribute='list') | map('length') | list
(words | groupby(0))[0].list
words | map('upper') | list
words | map('length') | list
words | map('replace', 'a', 'o') | list
users | map(attribute='name') | list
users | map(attribute='zz') | list
users | map(attribute='zz', default='?') | list
users | map(attribute='role.id') | list
none | map('upper') | list
words | map('nofilter') | list
[] | map('nofilter') | list
[] | map
nums | select('odd') | list
[1, 2, 3, 4] | select('even') | list
[1, 2, 3, 4] | reject('even') | list
[0, 1, '', 'a', none] | select | list
[0, 1, '', 'a', none] | reject | list
[1, 2, 3] | select('gt', 1) | list
[1, 2, 3] | select('divisibleby', 3) | list
[1, 2, 3] | select('in', [1, 2]) | list
users | selectattr('age', 'equalto', 30) | map(attribute='name') | list
users | selectattr('age', '==', 25) | map(attribute='name') | list
users | rejectattr('age', 'eq', 30) | map(attribute='name') | list
users | selectattr('zz') | list
users | selectattr('zz', 'defined') | list
users | selectattr('role.id', 'gt', 1) | list | length
users | selectattr | list
messages | selectattr('role', 'equalto', 'user') | map(attribute='content') | first
words | select('string') | list | length
words | reverse | list
'abc' | reverse
words | reverse
none | reverse
words | list
'abc' | list
d | list
5 | list
nums | batch(2) | list
nums | batch(2, 'x') | list
nums | slice(2) | list
nums | slice(3, 'x') | list
[1] | slice(0) | list
d | dictsort
d | dictsort(case_sensitive=true)
d | dictsort(reverse=true)
{'a': 3, 'b': 1} | dictsort(by='value')
d | dictsort(by='zz')
words | dictsort
d | items | list
none | items | list
missing | items | list
s | upper
s | lower
'hello world-foo (bar)' | title
"they're" | title
s | capitalize
5 | upper
blank | trim
'xxaxx' | trim('x')
5 | trim
s | replace('l', 'L')
s | replace('l', 'L', 1)
5 | replace(5, 6)
s | center(20) ~ '|'
s | wordcount
'a-b c_d 你好' | wordcount
'one two three four' | truncate(9)
'one two three four' | truncate(9, true)
'one two three four' | truncate(9, false, '..', 0)
'short' | truncate(3, leeway=5)
'x' | truncate(1)
lines | indent
lines | indent(2)
lines | indent(2, true)
lines | indent(2, true, true)
lines | indent('> ')
'' | indent
5 | indent
'%s-%s' | format(1, 2)
'%(a)s' | format(a=1)
'a' | format(1)
'<a href="x">\\'&' | e
'<a>' | escape
('<a>' | safe) ~ '<b>'
('<a>' | safe) + '<b>'
'<b>' + ('<a>' | safe)
('<a>' | e) | e
('<a>' | safe) | escape
('<a>' | safe) | forceescape
('<a>' | safe) | upper
('<a>%s' | safe) % '<x>'
('<a>{}' | safe).format('<x>')
('a' | safe).replace('a', '<')
('a' | safe).join(['<', '>'])
['<a>' | safe]
'<a>' | safe | length
5 | safe
5 | string
[1, 'a'] | string
none | string
'42' | int
' 42 ' | int
'42.7' | int
'x' | int
'x' | int(5)
'0x1f' | int(base=16)
'1f' | int(0, 16)
'11' | int(base=2)
'0b11' | int(0, 0)
'1_000' | int
2.9 | int
-2.9 | int
true | int
none | int
none | int(3)
'1e3' | int
'2.5' | float
'x' | float
'x' | float(1.5)
'1e3' | float
' 1.5 ' | float
'inf' | float
'nan' | float
'1_0.5' | float
5 | float
none | float
-5 | abs
-5.5 | abs
'a' | abs
2.5 | round
3.5 | round
2.567 | round(2)
2.5 | round(0, 'ceil')
2.4 | round(method='floor')
2.567 | round(1, 'floor')
1234 | round(-2)
1250 | round(-2)
5 | round
2.675 | round(2)
1e20 | round
42 | round(1, 'ceil')
'a' | round
1000 | filesizeformat
1 | filesizeformat
123456789 | filesizeformat
123456789 | filesizeformat(true)
999 | filesizeformat
'a b/c?é' | urlencode
{'a': 1, 'b c': '/'} | urlencode
[('x', 'y')] | urlencode
d | attr('a')
d | attr('zz')
s | attr('upper')
d | tojson
users | tojson
messages[2] | tojson
messages[2] | tojson(indent=2)
messages[2].tool_calls | tojson(indent=4)
[] | tojson(indent=2)
{} | tojson(indent=2)
[[], {}] | tojson(indent=1)
esc | tojson
uni | tojson
uni | tojson(ensure_ascii=true)
esc | tojson(ensure_ascii=true)
d | tojson(sort_keys=true)
{'b': 1, 'a': {'d': 1, 'c': 2}} | tojson(sort_keys=true, indent=2)
[1, 2] | tojson(separators=(',', ':'))
{'a': [1, 2]} | tojson(separators=(',', ':'))
{'a': [1, 2]} | tojson(separators=(', ', ': '), indent=2)
{1: 2, none: 3, true: 4, 1.5: 5} | tojson
{1: 2, 'a': 3} | tojson(sort_keys=true)
{(1, 2): 3} | tojson
[1.0, 1e16, 1e-7, 0.1, -0.0] | tojson
(1, 2) | tojson
none | tojson
true | tojson
'a' | tojson | tojson
words | map('upper') | tojson
range(3) | tojson
d.items() | tojson
'<a>' | safe | tojson
namespace(a=1) | tojson
[1, 2] | tojson(indent='--')
[1, 2] | tojson(indent=0)
s | nofilter
s | nofilter(1)
s | upper(1)
s is defined
missing is defined
missing is undefined
deep.q is defined
none is none
none is not none
missing is none
missing is not none
s is string
5 is string
5 is number
true is number
5.5 is number
5 is integer
true is integer
5.5 is float
true is boolean
1 is boolean
true is true
1 is true
false is false
d is mapping
words is mapping
words is sequence
s is sequence
d is sequence
5 is sequence
d.keys() is sequence
range(3) is sequence
(words | map('upper')) is sequence
words is iterable
5 is iterable
missing is iterable
missing is sequence
(words | map('upper')) is iterable
3 is odd
4 is odd
4 is even
missing is odd
'a' is odd
9 is divisibleby 3
9 is divisibleby(2)
9 is not divisibleby 2
9 is divisibleby 0
'abc' is lower
'ABC' is upper
5 is upper
1 is in [1, 2]
1 is not in [1, 2]
1 is eq 1
1 is equalto 2
1 is ne 2
1 is lt 2
3 is gt 2
3 is ge 3
3 is le 2
3 is greaterthan 2
none is sameas none
1 is sameas 1.0
words is sameas words
range is callable
5 is callable
missing is callable
'upper' is filter
'zz' is filter
'odd' is test
('a' | safe) is escaped
s is escaped
s is notest
s is not defined
s is string and s is not none
1 is odd is true
range(5) | list
range(2, 8, 3) | list
range(5, 0, -2) | list
range(0)
range(3)
range(1, 10, 2)
range(3)[1]
range(10)[2:5]
range(1.5)
range()
range(0, 5, 0)
range(100000) | length
range(100001)
range(10 ** 9)
dict(a=1, b=2)
dict([('a', 1)])
dict(d, a=5)
dict({'x': 1}, y=2).y
dict(1)
namespace(a=1).a
namespace(a=1)['a']
namespace({'a': 1}, b=2)
namespace().zz
namespace(a=1).zz.q
strftime_now('%Y-%m-%d')
strftime_now('%d %b %Y, %A %B %a %j %H:%M:%S %I %p %y %%')
strftime_now('%e|%-d|%-m|%D|%F|%T|%R|%u|%w|%C|%k|%l|%h|%n|%t')
strftime_now('%c|%x|%X|%r')
raise_exception('stop')
big
big + 0
big // 2
0.1 + 0.2
1 / 3
2 / 3
1e308 * 10
-1e308 * 10
10 ** 15
7 // 2.0
'abc'.upper().lower().title()
(1 + 2) * 3
(words | first).upper()
words | first | upper
-5 | abs
-(5 | abs)
2 * 3 | string
1 + '2' | int
'a' ~ 'b' | upper
not 1 in [1]
not (1 in [1])
1 + 1 ~ 2 + 2
1 ~ 2 * 3
1 < 2 and 2 < 3
true and not false
'a' * 2 ~ 'b'
[x for x in [1]]
{'a': 1}.a
{'a': 1}['a']
[1, 2][0]
'abc'[0]
(1, 2)[0]
'a'.b.c
5 if 5 > 3 else 4
[1, 2] | map('string') | join('-')
{'a': {'b': 1}}.a.b
words[n - 5]
words[0][0]
words[0].upper()[0]
s.split(',')[0].strip().lower()
s.split(',') | last | trim
messages[0]['role'] + ': ' + messages[0]['content']
messages[-1].tool_calls[0].function.arguments.k
messages[-1].content is none
messages | map(attribute='role') | join(',')
(messages | selectattr('role', 'in', ['user', 'assistant']) | list)[0].role
messages | length > 2
messages[1:] | length
messages[::-1][0].role
messages[0].role == 'system' and messages[1].role == 'user'
loop
loop.index
caller
varargs
1 +
(1
[1
{'a'
'a
1 2
a.1b
| upper
1 if
is defined
'a' is
{'a': }
foo(a=1, 2)
foo(*a, b)
s.upper(x=1)
d.get()
d.get('a', 'b', 'c')
words | join(d=',')
words | join(zz=1)
@
a $ b
1 ; 2
'a' 1
""".strip("\n").split("\n")

TEMPLATES = [
    # ---- text and white space ----
    "", "plain", "a\n", "a\n\n", "\n", "a\r\nb\rc\n", "{{ 'a' }}\n", "{{ 1 }}\n{{ 2 }}\n\n",
    "a {# comment #} b", "a {#- comment -#} b", "a {#- comment #} b", "a\n  {# c #}\nb", "a\n  {#+ c #}\nb",
    "a {# un", "{# {{ x }} {% if %} #}b", "{##}", "{# a #}\n\nb", "{# a -#}\n\nb", "{# a +#}\nb",
    "a  {{- 1 -}}  b", "a\n\n{{- 1 }}\n b", "a\n\n{{ 1 -}}\n b", "a  {{+ 1 }}  b",
    "{% if true %}\nx\n{% endif %}\ny", "  {% if true %}\n  x\n  {% endif %}\n  y", "a  {% if true %}b{% endif %}",
    "  {%+ if true %}x{% endif %}", "{% if true +%}\nx{% endif %}", "{%- if true -%}\n x \n{%- endif -%}\n y",
    "a\n  {%- if true %}\n  x\n  {%- endif %}\n  y", "  {{ 1 }}\n  {{ 2 }}", "\t{% set x = 1 %}\n\t{{ x }}\n",
    "{% if true %}a{% endif %}\n\nb", "a{% if true %}\n\n{% endif %}b", "x\u00a0{%- if true %}y{% endif %}",
    "\u2003{% if true %}y{% endif %}", "{% raw %}{{ x }}{% if %}{% endraw %}", "a  {%- raw -%}  {{ x }}  {%- endraw -%}  b",
    "  {% raw %}\n  x\n  {% endraw %}\n y", "{% raw %}x", "{% raw %}{% endraw %}\nb", "{ % if % }", "{ {", "{%", "{{", "%} }}",
    "{{ '}}' }}", "{{ '%}' }}", "{% set x = '%}' %}{{ x }}", "{{ {'a': {'b': 1}}}}", "{{ {'a': {'b': 1}} }}",
    "{{ '{{' }}{{ '{%' }}", "{{\n1\n+\n2\n}}", "{%\nif true\n%}\nx{% endif %}", "{% if true: %}x{% endif %}",
    "{{ 'a\nb' }}", "{{ 'a\r\nb' }}", "{{ 1, 2 }}", "{{ }}", "{% %}", "{{ 1 }} }}",
    # ---- if ----
    "{% if n > 5 %}big{% elif n > 3 %}mid{% else %}small{% endif %}", "{% if no %}a{% elif yes %}b{% else %}c{% endif %}",
    "{% if no %}a{% elif no %}b{% else %}c{% endif %}", "{% if no %}a{% endif %}", "{% if missing %}a{% else %}b{% endif %}",
    "{% if no %}{% if yes %}a{% endif %}{% else %}{% if yes %}b{% endif %}{% endif %}", "{% if yes %}", "{% endif %}",
    "{% if %}x{% endif %}", "{% if yes %}a{% else %}b{% else %}c{% endif %}", "{% if yes %}a{% endfor %}",
    "{% if 1, 2 %}t{% endif %}", "{% if not no and yes or no %}t{% endif %}",
    # ---- for ----
    "{% for x in words %}{{ x }},{% endfor %}", "{% for x in [] %}{{ x }}{% else %}none{% endfor %}",
    "{% for x in words %}{{ loop.index }}{{ loop.index0 }}{{ loop.first }}{{ loop.last }}{{ loop.length }} {% endfor %}",
    "{% for x in words %}{{ loop.revindex }}{{ loop.revindex0 }} {% endfor %}",
    "{% for x in words %}{{ loop.previtem }}<{{ x }}>{{ loop.nextitem }} {% endfor %}",
    "{% for x in words %}{{ loop.cycle('a', 'b', 'c') }}{% endfor %}", "{% for x in words %}{{ loop.cycle() }}{% endfor %}",
    "{% for x in [1, 1, 2, 2, 1] %}{{ loop.changed(x) }} {% endfor %}", "{% for x in words %}{{ loop.depth }}{{ loop.depth0 }}{% endfor %}",
    "{% for x in words if x[0] == 'a' %}{{ x }}{{ loop.index }}/{{ loop.length }}{% endfor %}",
    "{% for x in words if x == 'zz' %}{{ x }}{% else %}none{% endfor %}",
    "{% for k, v in d.items() %}{{ k }}={{ v }};{% endfor %}", "{% for k, v in d | dictsort %}{{ k }}={{ v }};{% endfor %}",
    "{% for k in d %}{{ k }}{% endfor %}", "{% for c in 'héy' %}[{{ c }}]{% endfor %}", "{% for x in 5 %}{% endfor %}",
    "{% for x in none %}{% endfor %}", "{% for x in missing %}a{% else %}b{% endfor %}", "{% for a, b in [[1, 2], [3, 4]] %}{{ a }}{{ b }}{% endfor %}",
    "{% for a, b in [[1, 2, 3]] %}{% endfor %}", "{% for a, b in [[1]] %}{% endfor %}", "{% for a, (b, c) in [[1, [2, 3]]] %}{{ a }}{{ b }}{{ c }}{% endfor %}",
    "{% for (a, b) in [[1, 2]] %}{{ a }}{{ b }}{% endfor %}", "{% for a, b in ['xy'] %}{{ a }}{{ b }}{% endfor %}",
    "{% for x in 1, 2, 3 %}{{ x }}{% endfor %}", "{% for x in range(3) %}{% for y in range(x) %}{{ x }}{{ y }}{{ loop.index }} {% endfor %}{% endfor %}",
    "{% for x in words %}{{ x }}{% if loop.index == 2 %}{% break %}{% endif %}{% endfor %}",
    "{% for x in range(5) %}{% if x is odd %}{% continue %}{% endif %}{{ x }}{% endfor %}",
    "{% for x in range(3) %}{% for y in range(3) %}{% if y == 1 %}{% break %}{% endif %}{{ x }}{{ y }} {% endfor %}{% endfor %}",
    "{% for x in [1] %}{% break %}{% else %}e{% endfor %}", "{% break %}", "{% for x in [] %}{% else %}{% break %}{% endfor %}",
    "{% for x in words %}{% set y = x %}{% endfor %}{{ y }}", "{% set y = 0 %}{% for x in nums %}{% set y = y + x %}{{ y }} {% endfor %}{{ y }}",
    "{% for x in [1, 2] %}{{ y }}{% set y = x %}{% endfor %}", "{% for x in [1] %}{% endfor %}{{ x }}", "{% set x = 9 %}{% for x in [1] %}{{ x }}{% endfor %}{{ x }}",
    "{% set ns = namespace(found=false) %}{% for x in range(4) if not ns.found %}{{ x }}{% if x == 1 %}{% set ns.found = true %}{% endif %}{% endfor %}",
    "{% set ns = namespace(n=0) %}{% for x in range(4) %}{% set ns.n = ns.n + x %}{% endfor %}{{ ns.n }}",
    "{% for item in nested recursive %}[{% if item is iterable %}{{ loop(item) }}{% else %}{{ item }}{% endif %}]{% endfor %}",
    "{% for item in nested recursive %}{{ loop.depth }}{% if item is iterable %}{{ loop(item) }}{% endif %}{% endfor %}",
    "{% for x in [1] %}{{ loop([2]) }}{% endfor %}", "{% for x in words %}{{ loop }}{% break %}{% endfor %}",
    "{% for x in words | map('upper') %}{{ x }}{{ loop.length }}{% endfor %}", "{% for x in words | map('upper') %}{{ loop.last }}{% endfor %}",
    "{% set g = words | map('upper') %}{% for x in g %}{{ x }}{% endfor %}|{% for x in g %}{{ x }}{% endfor %}",
    "{% set g = words | map('upper') %}{{ g | list }}{{ g | list }}", "{% for x in [1, 2, 3] %}{{ x if loop.first else loop.previtem + x }}{% endfor %}",
    "{% for m in messages %}{{ m.role }}{% if not loop.last %}, {% endif %}{% endfor %}", "{% for x in words %}", "{% for x words %}{% endfor %}",
    "{% for %}{% endfor %}", "{% for 1 in words %}{% endfor %}", "{% for loop in words %}{{ loop }}{% endfor %}", "{% for x.y in words %}{% endfor %}",
    "{% for x in words %}{% for y in words %}{{ loop.index }}{% endfor %}{{ loop.index }}{% endfor %}",
    "{% for x in [1] %}{{ loop.zz }}{% endfor %}", "{% for x in [1] %}{{ loop.zz.y }}{% endfor %}", "{% for i in range(3) -%} {{ i }} {%- endfor %}",
    "{% for x in [[1, 2], [3]] %}{{ loop.index }}{% for y in x %}{{ loop.index }}{% endfor %}{% endfor %}",
    # ---- set ----
    "{% set x = 1 %}{{ x }}", "{% set a, b = 1, 2 %}{{ a }}{{ b }}", "{% set a, b = [1] %}", "{% set (a, b) = (1, 2) %}{{ b }}", "{% set x = 1, 2 %}{{ x }}",
    "{% set x %}a{{ 1 }}b{% endset %}[{{ x }}]", "{% set x | upper %}abc{% endset %}{{ x }}", "{% set x | upper | replace('A', 'z') %}abc{% endset %}{{ x }}",
    "{% set x %}{% set y = 1 %}{{ y }}{% endset %}{{ x }}{{ y }}", "{% set x = 1 %}{% if yes %}{% set x = 2 %}{% endif %}{{ x }}",
    "{% set n = n + 1 %}{{ n }}", "{% if no %}{% set n = 0 %}{% endif %}{{ n }}", "{{ x }}{% set x = 1 %}{{ x }}", "{% set ns = namespace() %}{% set ns.a = 1 %}{{ ns.a }}",
    "{% set ns = namespace(a=[1]) %}{% set ns.a = ns.a + [2] %}{{ ns.a }}", "{% set d.a = 5 %}", "{% set zz.a = 5 %}", "{% set ns = namespace() %}{% set ns.a %}x{% endset %}{{ ns.a }}",
    "{% set x = missing %}{{ x is defined }}", "{% set true = 1 %}", "{% set x %}", "{% set = 1 %}", "{% set x = %}", "{% set 1 = 2 %}", "{% set x == 1 %}",
    "{% set ns = namespace(x=1) %}{{ ns }}", "{% set x = {'a': 1} %}{% set x = dict(x, b=2) %}{{ x }}", "{% set ns = namespace(a=1) %}{% set b = ns %}{% set b.a = 2 %}{{ ns.a }}",
    "{% set none = 1 %}{{ none }}", "{% set loop = 1 %}{{ loop }}", "{% set x = 'a' if yes else 'b' %}{{ x }}", "{% set x=1%}{%set y=2%}{{x+y}}",
    # ---- macros ----
    "{% macro f() %}x{% endmacro %}{{ f() }}{{ f() }}", "{% macro f(a, b=2) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}{{ f(1, 3) }}{{ f(b=1, a=0) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}[{{ f() }}]", "{% macro f(a) %}{{ a.b }}{% endmacro %}{{ f() }}", "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(1, 2) }}",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(z=2) }}", "{% macro f(a) %}{{ varargs }}{{ kwargs }}{% endmacro %}{{ f(1, 2, 3, x=4) }}",
    "{% macro f(a, b=a) %}{{ a }}{{ b }}{% endmacro %}{{ f(1) }}", "{% macro f(n) %}{{ n }}{% if n > 0 %}{{ f(n - 1) }}{% endif %}{% endmacro %}{{ f(3) }}",
    "{% macro f() %}{{ n }}{% endmacro %}{{ f() }}", "{% macro f() %}{{ y }}{% endmacro %}{% set y = 5 %}{{ f() }}", "{% macro f() %}{% set y = 1 %}{{ y }}{% endmacro %}{{ f() }}{{ y }}",
    "{% set x = 1 %}{% macro f() %}{% set x = x + 1 %}{{ x }}{% endmacro %}{{ f() }}{{ f() }}{{ x }}", "{% macro f(x) %}<{{ x }}>{% endmacro %}{{ f('a') | upper }}{{ f('b') ~ 1 }}",
    "{% macro f(x) %}{{ caller() }}{{ x }}{% endmacro %}{% call f(1) %}body{% endcall %}", "{% macro f() %}{{ caller(1, 2) }}{% endmacro %}{% call(a, b) f() %}{{ a }}{{ b }}{% endcall %}",
    "{% macro f() %}{{ caller() }}{% endmacro %}{{ f() }}", "{% macro f() %}x{% endmacro %}{% call f() %}y{% endcall %}", "{% macro f() %}{{ caller is defined }}{% endmacro %}{{ f() }}{% call f() %}{% endcall %}",
    "{% macro f() %}{% for x in [1, 2] %}{{ caller(x) }}{% endfor %}{% endmacro %}{% call(x) f() %}[{{ x }}]{% endcall %}", "{% call 5 %}{% endcall %}", "{% call missing() %}{% endcall %}",
    "{% macro f %}{% endmacro %}", "{% macro f(a=1, b) %}{% endmacro %}", "{% macro f() %}", "{{ f() }}{% macro f() %}x{% endmacro %}", "{% if yes %}{% macro f() %}x{% endmacro %}{% endif %}{{ f() }}",
    "{% for i in [1, 2] %}{% macro f() %}{{ i }}{% endmacro %}{{ f() }}{% endfor %}", "{% macro f(a, b, c) %}{{ a }}{{ b }}{{ c }}{% endmacro %}{{ f(*[1, 2], **{'c': 3}) }}", "{% macro f() %}{% endmacro %}{{ f.name }}{{ f is callable }}",
    "{% macro a() %}A{{ b() }}{% endmacro %}{% macro b() %}B{% endmacro %}{{ a() }}", "{% macro f() %}  x  {% endmacro %}[{{ f() }}][{{ f() | trim }}]", "{% macro f(x) -%}\n  {{ x }}\n{%- endmacro %}[{{ f(1) }}]",
    "{% macro f(a) %}{{ a }}{% endmacro %}{{ f(a=1, a=2) }}", "{% macro f(caller) %}{{ caller }}{% endmacro %}{{ f(1) }}", "{% macro f() %}{{ f }}{% endmacro %}{{ f() }}", "{% set g = namespace() %}{% macro f() %}z{% endmacro %}{% set g.f = f %}{{ g.f() }}",
    "{% macro f() %}{{ kwargs.x }}{{ varargs | length }}{% endmacro %}{{ f(1, 2, x='k') }}", "{% macro f(d) %}{{ d | tojson }}{% endmacro %}{{ f({'a': 1}) }}", "{% macro f(x, y=[]) %}{{ x }}{{ y }}{% endmacro %}{{ f(1) }}{{ f(1, y=[2]) }}",
    # ---- other blocks ----
    "{% filter upper %}abc{{ 'd' }}{% endfilter %}", "{% filter replace('a', 'b') | upper %}aaa{% endfilter %}", "{% filter trim %}  x  {% endfilter %}", "{% filter nofilter %}x{% endfilter %}", "{% filter upper %}{% set z = 1 %}{% endfilter %}{{ z }}",
    "{% with a = 1, b = 2 %}{{ a }}{{ b }}{% endwith %}{{ a }}", "{% with %}{% set a = 1 %}{{ a }}{% endwith %}{{ a }}", "{% set a = 1 %}{% with a = 2, b = a %}{{ a }}{{ b }}{% endwith %}", "{% with a, b = 1, 2 %}{{ a }}{% endwith %}",
    "{% generation %}a{{ 1 }}{% endgeneration %}b", "{% for m in messages %}{% generation %}{{ m.role }}{% endgeneration %}{% endfor %}", "{% generation %}{% set q = 1 %}{% endgeneration %}{{ q }}", "{% set c = cycler('a', 'b') %}{{ c.next() }}{{ c.next() }}{{ c.next() }}{{ c.current }}",
    "{% set j = joiner('; ') %}{% for x in words %}{{ j() }}{{ x }}{% endfor %}", "{% set j = joiner() %}{{ j() }}a{{ j() }}b", "{% unknown %}", "{% do 1 %}", "{% endfor %}", "{% if yes %}{% endfor %}{% endif %}", "{% elif %}", "{% else %}",
    "{% set c = cycler() %}", "{% set c = cycler(1, 2) %}{{ c.next() }}{{ c.reset() }}{{ c.next() }}",
    # ---- as chat templates do ----
    "{% for message in messages %}{{ '<|' + message['role'] + '|>\\n' }}{% if message.content %}{{ message['content'] | trim }}{% endif %}{% if message.tool_calls %}{% for call in message.tool_calls %}{{ call.function | tojson }}{% endfor %}{% endif %}{{ '<|end|>\\n' }}{% endfor %}{% if add_generation_prompt is defined and add_generation_prompt %}{{ '<|assistant|>' }}{% endif %}",
    "{%- if messages[0]['role'] == 'system' -%}\n    {%- set system = messages[0]['content'] -%}\n    {%- set rest = messages[1:] -%}\n{%- else -%}\n    {%- set rest = messages -%}\n{%- endif -%}\n{{ system }}|{% for m in rest %}{{ m.role }}{% endfor %}",
    "{% for m in messages %}{% if (m['role'] == 'user') != (loop.index0 % 2 == 0) %}{{ raise_exception('alternate') }}{% endif %}{% endfor %}",
    "{%- set ns = namespace(last=-1) %}{%- for m in messages[::-1] %}{%- set i = (messages | length - 1) - loop.index0 %}{%- if m.role == 'user' and ns.last < 0 %}{%- set ns.last = i %}{%- endif %}{%- endfor %}{{ ns.last }}",
    "{% set content = '<think>a\\n</think>\\nb' %}{% if '</think>' in content %}{% set r = content.split('</think>')[0].rstrip('\\n').split('<think>')[-1].lstrip('\\n') %}{{ r }}|{{ content.split('</think>')[-1].lstrip('\\n') }}{% endif %}",
    "{% if tools is defined and tools %}T{% else %}N{% endif %}{{ tools | default([]) | length }}", "{{ '' if messages[2].content is none else messages[2].content }}|", "{{ (messages | selectattr('role', 'equalto', 'tool') | list | length) > 0 }}",
    "{% for tc in messages[2].tool_calls %}{% for k, v in tc.function.arguments.items() %}{{ k }}={{ v if v is string else v | tojson }};{% endfor %}{% endfor %}",
    "{%- macro render(x, depth) -%}\n{%- if x is mapping -%}{% for k, v in x | dictsort %}{{ '  ' * depth }}{{ k }}:\n{{ render(v, depth + 1) }}{% endfor %}\n{%- else -%}{{ '  ' * depth }}{{ x }}\n{% endif -%}\n{%- endmacro -%}{{ render(deep, 0) }}",
    "{% set s = '' %}{% for m in messages %}{% set s = s ~ m.role %}{% endfor %}[{{ s }}]", "{{ messages[0].content.strip() if messages[0].content is string else '' }}", "{{ bos_token }}{{ eos_token | default('') }}x", "{{ messages[5].role }}", "{{ messages[5] is defined }}",
]
