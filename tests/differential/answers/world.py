"""What one case is made of: a tree of headers, a source, options, variables, a floating-point state; and the changes to
them. The same seed makes the same world."""
import os
import re
import shutil
from pathlib import Path

PLACES = ("src", "src/sub", "one", "one/sub", "two", "two/sub")
NAMES = ("a.h", "b.h", "val.h", "c.h")
ROUNDINGS = ("upward", "downward", "zero", "flush")

#: How each language spells a kernel that writes the values of expressions. Expressions are integers.
BODIES = {
    "c": ("#include <kiln_kernel.h>\n", "KILN_KERNEL(k, KILN_INOUT(int, x))\n{{\n KILN_ITEMS_X(i)\n {{\n{}  }}\n}}\n", "x[{} + (i & 0)]"),
    "cuda": ("", 'extern "C" __global__ void k(int *x)\n{{\n{}}}\n', "x[{}]"),
    "hip": ("", 'extern "C" __global__ void k(int *x)\n{{\n{}}}\n', "x[{}]"),
    "opencl-c": ("", "__kernel void k(__global int *x)\n{{\n{}}}\n", "x[{}]"),
    "glsl": ("#version 450\n#extension GL_GOOGLE_include_directive : require\n",
             "layout(local_size_x = 1) in;\nlayout(std430, binding = 0) buffer B {{ int x[]; }};\nvoid main()\n{{\n{}}}\n", "x[{}]"),
}
JOIN = "#ifndef J\n#define J_(a,b) a##b\n#define J(a,b) J_(a,b)\n#define S_(x) #x\n#define S(x) S_(x)\n#endif\n"


class World:
    """`draw` is a random.Random; `root` an empty directory."""

    def __init__(self, draw, root, language):
        self.draw, self.root, self.language = draw, Path(root), language
        self.number = 10
        self.cwd, self.variables, self.rounding = "", {}, None
        self.history = []
        for place in PLACES:
            (self.root / place).mkdir(parents=True, exist_ok=True)
        if draw.random() < 0.5:
            (self.root / "link").symlink_to("two")
        for place in PLACES:
            for name in NAMES:
                if draw.random() < 0.6:
                    self.write(self.root / place / name)
        (self.root / "data.bin").write_bytes(b"DATA1111")
        (self.root / "response.txt").write_text("-DFROM_FILE=3\n")
        self.name = self.draw_name()
        self.draw_source()

    # --- drawing ---------------------------------------------------------------------------------

    def next_number(self):
        self.number += 1
        return self.number

    def header_text(self, name):
        """Of the same length for each number. What is included twice says so."""
        word = name.split(".")[0]
        guard = self.draw.choice(("#pragma once\n", "#pragma once\n", "", f"#ifndef G_{word}\n#define G_{word}\n"))
        inner = ""
        if self.language != "glsl" and self.draw.random() < 0.3:
            other = self.draw.choice(NAMES)
            inner = f"#if __has_include(\"{other}\")\n#include \"{other}\"\n#endif\n" if word != other.split(".")[0] else ""
        text = (f"{guard}#ifdef SEEN_{word}\n#undef TWICE_{word}\n#define TWICE_{word} 1\n#endif\n#define SEEN_{word}\n"
                f"#undef V_{word}\n#define V_{word} {self.next_number() % 900 + 100}\n{inner}")
        return text + ("#endif\n" if guard.startswith("#ifndef") else "")

    def write(self, path):
        path.write_text(self.header_text(path.name))

    def draw_name(self):
        """Of the source: plain, with a directory, absolute, a header's."""
        return self.draw.choice(("k.cu",) * 6 + ("u.cu", "src/k.cu", f"{self.root}/src/k.cu", "a.h", "./k.cu", f"{self.root}/src/a.h"))

    def spell(self, name):
        """`name` as a header may be named."""
        way = self.draw.choice(("{}",) * 14 + ("./{}", "sub/{}", "../one/{}", "link/{}", "sub/../{}", f"{self.root}/one/{{}}"))
        return way.format(name)

    def quote(self, name):
        return f"<{name}>" if self.draw.random() < 0.35 and not name.startswith("/") else f'"{name}"'

    def value_of(self, name):
        word = name.split(".")[0]
        return word, (f"#ifndef V_{word}\n#define V_{word} -1\n#endif\n#ifndef TWICE_{word}\n#define TWICE_{word} 0\n#endif\n")

    def include(self):
        found = [path.name for path in self.headers()]
        name = self.draw.choice(found if self.draw.random() < 0.8 else NAMES)
        what = self.quote(self.spell(name))
        word, after = self.value_of(name)
        directive = self.draw.choice(("#include {}\n",) * 40 + (
            "# include {}\n", "#\tinclude{}\n", "/**/#/**/include/**/{}\n", "#inc\\\nlude {}\n", "%:include {}\n", "??=include {}\n",
            "#include \\\n{} // x\n", "#define NOTHING\n#include NOTHING {}\n", "#define H {}\n#include H\n#undef H\n",
            "#line 7 \"two/x.c\"\n#include {}\n", "#include_next {}\n", "#import {}\n", "_Pragma(\"once\")\n#include {}\n"))
        test = self.draw.choice(("#if __has_include({0})\n{1}#endif\n",) * 30 + (
            "#ifdef __has_include\n#if __has_include({0})\n{1}#endif\n#endif\n",
            "#define HI __has_include\n#if HI({0})\n{1}#endif\n",
            "#if J(__has_,include)({0})\n{1}#endif\n",
            "#if J(J(__ha,s_),include)({0})\n{1}#endif\n",
            "#if defined(NEVER) || __has_include({0}) && 1\n{1}#endif\n"))
        if self.language == "glsl":
            return f"#include {what.replace('<', chr(34)).replace('>', chr(34))}\n{after}", f"V_{word} + 7 * TWICE_{word}"
        if self.draw.random() < 0.25:
            return directive.format(what) + after, f"V_{word} + 7 * TWICE_{word}"
        return test.format(what, directive.format(what)) + after, f"V_{word} + 7 * TWICE_{word}"

    def assembled(self):
        """Names and words that the preprocessor puts together."""
        word, after = self.value_of("val.h")
        lines = self.draw.choice(("#define A <val.h>\n#include A\n",) * 3 + ("#define A(x) S_(x.h)\n#include A(val)\n",) * 3 + (
            "#include S(J(v,al).h)\n", "#include S(J(J(v,a),l).h)\n", "#define V v\n#include S(J(V,al).h)\n",
            "#define L <\n#include L val.h>\n", "#define A(x) <x.h>\n#include A(val)\n", "#define A(x,y) <x##y.h>\n#include A(v,al)\n",
            "#define A(x,y,z) S(x##y##z.h)\n#include A(v,a,l)\n", "#define E S(val.h)\n#include E\n",
            "#ifdef GIVEN\n#include GIVEN\n#endif\n", "#ifdef GIVEN\n#if __has_include(GIVEN)\n#include GIVEN\n#endif\n#endif\n"))
        return lines + after, f"V_{word} + 7 * TWICE_{word}"

    def reserved(self):
        made = self.draw.choice(("J(__FI,LE__)", "__FILE__", "J(__TI,ME__)", "__TIMESTAMP__", "J(__BASE_,FILE__)", "J(J(__F,IL),E__)",
                                 "J(__TIME,STAMP__)", "__DATE__"))
        return f"#define R {made}\n", "(int)sizeof(R)" if self.draw.random() < 0.5 else f"(int)(R)[{self.draw.choice((0, 3, 7))}]"

    def itself(self):
        name = os.path.basename(self.name)
        return self.draw.choice((
            (f"#if __has_include(\"{name}\")\n#define ME 1\n#else\n#define ME 2\n#endif\n", "ME"),
            (f"#if __has_include(\"u.cu\")\n#define ME 1\n#else\n#define ME 2\n#endif\n", "ME"),
            ("#ifndef V_a\n#if __has_include(\"a.h\")\n#define V_a 5\n#include \"a.h\"\n#else\n#define V_a 6\n#endif\n#endif\n", "V_a"),
            ("#ifndef AGAIN\n#define AGAIN 0\n#include __FILE__\n#undef AGAIN\n#define AGAIN 1\n#endif\n", "AGAIN")))

    def constant(self):
        if self.language == "glsl":
            return "", "int(1e9 * (0.1 * 0.7 + 2.5e-3))"
        return "", self.draw.choice(("(int)(1e9f * (0.1f * 0.7f + 2.5e-3f))", "(int)(1e7f * sqrtf(2.0f))", "(int)(1e30f * 5e-30f * 1e5f)",
                                     "(int)(1e16 * (0.1 * 0.7 + 2.5e-3))", "(int)(5e-39f * 1e39f * 1000.0f)"))

    def given(self):
        """What options and variables define."""
        name = self.draw.choice(("FROM_OPTION", "FROM_FILE", "FROM_VARIABLE", "__FAST_MATH__", "__OPTIMIZE__", "__CUDA_ARCH__"))
        return f"#ifndef {name}\n#define {name} 77\n#endif\n", f"{name} + 0"

    def assembler(self):
        wanted = self.draw.choice((".incbin \\\"data.bin\\\"", f".incbin \\\"{self.root}/data.bin\\\"", f".INCBIN \\\"{self.root}/data.bin\\\"",
                                   f".inc\" \"bin \\\"{self.root}/data.bin\\\"", f"\\056incbin \\\"{self.root}/data.bin\\\"",
                                   f".macro m a\\n.\\\\a\\\\()bin \\\"{self.root}/data.bin\\\"\\n.endm\\nm inc"))
        word = self.draw.choice(("__asm__", "asm", "__asm", "J(__as,m__)"))
        return f"{word}(\".pushsection .rodata\\n{wanted}\\n.popsection\\n\");\n", "1"

    def draw_source(self):
        kinds = [self.include] * 4 + [self.given]
        if self.language != "glsl":
            kinds += [self.assembled] + ([self.itself] if self.draw.random() < 0.4 else [])
            kinds += [self.constant] if self.language != "opencl-c" else []
            kinds += [self.reserved] if self.draw.random() < 0.15 else []
        else:
            kinds += [self.constant]
        if self.language == "c" and self.draw.random() < 0.15:
            kinds = [self.assembler, self.include]
        head, body, place = BODIES[self.language]
        lines, values = [], []
        for _ in range(self.draw.randint(1, 4)):
            before, value = self.draw.choice(kinds)()
            lines.append(before)
            values.append(value)
        statements = "".join(f"  {place.format(n)} = {value};\n" for n, value in enumerate(values))
        join = JOIN if re.search(r"\b[JS]_?\(", "".join(lines)) else ""
        self.source = head + join + "".join(lines) + body.format(statements)

    # --- changes ---------------------------------------------------------------------------------

    def headers(self):
        found = [path for place in PLACES for path in sorted((self.root / place).glob("*.h"))]
        return found or [self.root / "one/a.h"]

    def keep_stamp(self, path, change):
        """`change` and no other time of modification."""
        facts = path.stat() if path.exists() else None
        change(path)
        if facts is not None and path.exists():
            os.utime(path, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    def edit_header(self):
        path = self.draw.choice(self.headers())
        if path.exists():
            text = path.read_text()
            digits = [word for word in text.split() if word.isdigit() and len(word) == 3]
            text = text.replace(digits[0], str(self.next_number() % 900 + 100)) if digits else text + "\n"
            self.keep_stamp(path, lambda p: p.write_text(text))
        return f"edit {path}, same size and time"

    def rewrite_header(self):
        path = self.draw.choice(self.headers())
        path.unlink(missing_ok=True)
        self.write(path)
        return f"write {path} anew"

    def touch_header(self):
        path = self.draw.choice(self.headers())
        if path.exists():
            os.utime(path, ns=(0, self.draw.randint(1, 2**60)))
        return f"touch {path}"

    def delete_header(self):
        path = self.draw.choice(self.headers())
        path.unlink(missing_ok=True)
        return f"delete {path}"

    def add_header(self):
        path = self.root / self.draw.choice(PLACES) / self.draw.choice(NAMES)
        path.unlink(missing_ok=True)
        self.write(path)
        return f"make {path}"

    def replace_header(self):
        """One header becomes another's link or copy."""
        path, other = self.draw.choice(self.headers()), self.draw.choice(self.headers())
        if path == other or not other.exists():
            return self.touch_header()
        way = self.draw.choice(("symbolic link", "hard link", "copy", "copy with its time"))
        path.unlink(missing_ok=True)
        if way == "symbolic link":
            path.symlink_to(other)
        elif way == "hard link":
            os.link(os.path.realpath(other), path)
        else:
            (shutil.copy2 if "time" in way else shutil.copyfile)(other, path)
        return f"{path} becomes a {way} of {other}"

    def turn_link(self):
        link = self.root / "link"
        to = self.draw.choice(("one", "two", "two/sub"))
        link.unlink(missing_ok=True)
        link.symlink_to(to)
        return f"link -> {to}"

    def edit_data(self):
        path = self.root / "data.bin"
        self.keep_stamp(path, lambda p: p.write_bytes(b"DATA%04d" % self.draw.randint(0, 9999)))
        (self.root / "response.txt").write_text(f"-DFROM_FILE={self.draw.randint(3, 9)}\n")
        return "edit data.bin and response.txt"

    def change_directory(self):
        self.cwd = self.draw.choice(("", "one", "two", "src"))
        return f"current directory {self.cwd or '.'}"

    def rename_source(self):
        self.name = self.draw_name()
        return f"name {self.name}"

    def change_source(self):
        self.draw_source()
        return "another source"

    def change_rounding(self):
        self.rounding = None if self.rounding else self.draw.choice(ROUNDINGS)
        return f"floating-point state {self.rounding}"

    def nothing(self):
        return "no change"

    def change(self, more):
        """One change. `more` is what else this compiler's world may change."""
        kinds = [self.edit_header] * 4 + [self.rewrite_header, self.touch_header, self.delete_header, self.nothing] + (
            [self.add_header] * 3 + [self.replace_header] * 3 + [self.turn_link, self.edit_data, self.change_directory,
                                                                  self.rename_source, self.change_source, self.change_rounding] + more)
        said = self.draw.choice(kinds)()
        self.history.append(said)
        return said

    def describe(self):
        yield f"name {self.name!r}, in {self.cwd or '.'}, variables {self.variables}, floating-point state {self.rounding}"
        yield from (f"  {n}: {said}" for n, said in enumerate(self.history))
        yield self.source
        for path in sorted(self.root.rglob("*")):
            if path.is_symlink():
                yield f"--- {path} -> {os.readlink(path)}"
            elif path.is_file() and path.stat().st_size < 2000:
                yield f"--- {path}\n{path.read_bytes().decode('utf-8', 'replace')}"
