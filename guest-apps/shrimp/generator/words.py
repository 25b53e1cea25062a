# SPDX-License-Identifier: Apache-2.0
"""Names that generated C cannot have: `tests/test_names.py` compares with what the compiler says."""

from __future__ import annotations

import re

# C11, C23 (which compilers take by default from some version on) and GNU C; what stub code uses besides.
WORDS = frozenset(
    """
    alignas alignof asm auto bool break case char const constexpr continue default do double else enum extern false
    float for goto if inline int long nullptr register restrict return short signed sizeof static static_assert struct
    switch thread_local true typedef typeof typeof_unqual union unsigned void volatile while
    linux main unix NULL memcpy offsetof strdupa strndupa unreachable
    locale_t max_align_t nullptr_t ptrdiff_t size_t wchar_t
    """.split()  # noqa: SIM905
)
# Of stdint.h, and what C has for the compiler and its library.
PATTERN = re.compile(
    r"u?int(_fast|_least)?\d+_t|u?int(max|ptr)_t|U?INT((_FAST|_LEAST)?\d+|MAX|PTR)_(MIN|MAX|WIDTH|C)"
    r"|(PTRDIFF|R?SIZE|SIG_ATOMIC|WCHAR|WINT)_(MIN|MAX|WIDTH)|_[_A-Z].*"
)
# Whose types the compiler knows, and those of string.h.
FUNCTIONS = frozenset(
    """
    _exit abort abs aligned_alloc alloca basename bcmp bcopy bzero calloc dcgettext dgettext execl execle execlp execv
    execve execvp exit explicit_bzero feclearexcept fegetenv fegetexceptflag fegetround feholdexcept feraiseexcept
    fesetenv fesetexceptflag fesetround fetestexcept feupdateenv ffs ffsimax ffsl ffsll fork fprintf fprintf_unlocked
    fputc fputc_unlocked fputs fputs_unlocked free fscanf fwrite fwrite_unlocked gettext imaxabs index isalnum isalpha
    isascii isblank iscntrl isdigit isgraph islower isprint ispunct isspace isupper iswalnum iswalpha iswblank iswcntrl
    iswdigit iswgraph iswlower iswprint iswpunct iswspace iswupper iswxdigit isxdigit labs llabs malloc memccpy memchr
    memcmp memfrob memmem memmove mempcpy memrchr memset memset_explicit posix_memalign printf printf_unlocked putc
    putc_unlocked putchar putchar_unlocked puts puts_unlocked rawmemchr realloc rindex scanf sigabbrev_np sigdescr_np
    snprintf sprintf sscanf stpcpy stpncpy strcasecmp strcasecmp_l strcasestr strcat strchr strchrnul strcmp strcoll
    strcoll_l strcpy strcspn strdup strerror strerror_l strerror_r strerrordesc_np strerrorname_np strfmon strfry
    strftime strlcat strlcpy strlen strncasecmp strncasecmp_l strncat strncmp strncpy strndup strnlen strpbrk strrchr
    strsep strsignal strspn strstr strtok strtok_r strverscmp strxfrm strxfrm_l timingsafe_bcmp toascii tolower toupper
    towlower towupper vfprintf vfscanf vprintf vscanf vsnprintf vsprintf vsscanf
    """.split()  # noqa: SIM905
)
# Each for several types.
MATHEMATICS = frozenset(
    """
    acos acosh asin asinh atan atan2 atanh cabs cacos cacosh carg casin casinh catan catanh cbrt ccos ccosh ceil cexp
    cimag clog clog10 conj copysign cos cosh cpow cproj creal csin csinh csqrt ctan ctanh drem erf erfc exp exp10 exp2
    expm1 fabs fdim finite floor fma fmax fmin fmod frexp gamma hypot ilogb isinf isnan j0 j1 jn ldexp lgamma llrint
    llround log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter nexttoward pow pow10 remainder remquo
    rint round roundeven scalb scalbln scalbn signbit significand sin sincos sinh sqrt tan tanh tgamma trunc y0 y1 yn
    """.split()  # noqa: SIM905
)
TYPED = re.compile(r"(.+?)([fl]?(?:_r)?|f16|f32x?|f64x?|f128|d32|d64|d128)")


def taken(name: str) -> str:
    """By what, wherever the name is; or nothing."""
    if "shrimp" in name.lower():
        return "names with shrimp in them are those of stubs"
    if name in WORDS or PATTERN.fullmatch(name):
        return "a word of C, of its headers or its compiler"
    return ""


def function(name: str) -> bool:
    """Whether C has a function of this name: members and parameters may have it, too."""
    typed = TYPED.fullmatch(name)
    return name in FUNCTIONS or name in MATHEMATICS or bool(typed and typed[1] in MATHEMATICS)
