// The texts that encoders are compared on: hand-made ones for each known trap, and random ones from a fixed seed.

const scripts = [
  "The quick brown fox jumps over the lazy dog.",
  "Les élèves naïfs où ça œuvre à Noël, n'est-ce pas ?",
  "Größe, Straße, ẞ, Ärger, İstanbul ılık",
  "Быстрая коричневая лиса перепрыгивает через ленивую собаку",
  "Η γρήγορη καφέ αλεπού πηδάει",
  "敏捷的棕色狐狸跳过了懒狗。你好，世界！",
  "素早い茶色の狐がのろまな犬を飛び越える。カタカナとひらがなー々〆",
  "빠른 갈색 여우가 게으른 개를 뛰어넘는다 ㄱㄴㄷ",
  "สวัสดีชาวโลก ภาษาไทยไม่มีวรรคระหว่างคำ ก็ได้",
  "नमस्ते दुनिया, हिन्दी में संयुक्ताक्षर क्षत्रिय ज्ञान",
  "বাংলা ভাষা, தமிழ் மொழி, తెలుగు భాష, ಕನ್ನಡ, മലയാളം",
  "مرحبا بالعالم، كيف حالك؟ مُحَمَّد",
  "שלום עולם, מה שלומך? נִקּוּד",
  "ᠮᠣᠩᠭᠣᠯ ᠬᠡᠯᠡ, བོད་སྐད།, አማርኛ, ქართული, Հայերեն, ខ្មែរ, မြန်မာ, ລາວ, සිංහල",
  "𝔘𝔫𝔦𝔠𝔬𝔡𝔢 𝕏 𝟘𝟙𝟚 𐍈 𓀀 🄰",
];

const traps = [
  "", " ", "  ", "   ", "\n", "\n\n", "\n\n\n\n", "\r\n", "\r\n\r\n", "\t", "\t\t", " \n", "\n ", " \n \n ", "a\n", "a \n", "a\n\nb", "a  b",
  "a   b    c     d", "   leading", "trailing   ", "\n\n  x\n\t y", "a\r\nb\r\n", "x\u00A0y\u3000z\u2003w", "\u2028\u2029", "\u0085a\u0085", "\u200B\u200Dx",
  "\u180Ex\u180E y", "\uFEFFbom", "a\u000Bb\u000Cc", "\u001C\u001D\u001E\u001F x",
  "don't won't I'm he'll we've they're she'd it's", "DON'T WON'T I'M HE'LL WE'VE THEY'RE SHE'D IT'S", "Don'T 'S'T'RE'VE'M'LL'D", "'s't're've'm'll'd", "''s ' s 'x 'sx", "l'été d'accord qu'il",
  "rock'n'roll ’s don’t", "0", "1 12 123 1234 12345 1234567890", "3.14159 1,000,000 1e-10 0xDEADBEEF 2nd 4x4", "١٢٣٤٥ ४५६ 一二三 Ⅷ ½ ² ①②③ ౦౧",
  "camelCaseWord HTTPServer XMLHttpRequest iPhone McDonald aB AbC ABc", "ALLCAPS lower Title", "ǅungla ǈ ǋ ʰʲ ªº", "snake_case __init__ _x_ a__b",
  "def f(x: int) -> str:\n    return f\"{x!r}\"  # comment\n\n\nclass A(B):\n\tpass\n", "for (int i = 0; i < n; ++i) { a[i] += b[i] * c; } // done\n",
  "<html><body class=\"x\">&nbsp;</body></html>", "{\"key\": [1, 2.5, null, true], \"s\": \"a\\n\\u00e9\"}", "SELECT * FROM t WHERE a='b' AND c<>3;",
  "https://example.org/path?q=a%20b&c=d#frag user@example.com", "C:\\Windows\\System32", "$x = $y + 100€; £5 ¥7 ₹9", "a/b//c///\n/d/\n", "!!! ??? ... ---- ==== #### ****", "...\n\n", "?!\r\n\r\nx",
  "( a ) [ b ] { c }", "\"quoted\" “curly” «guillemets» ‹x› 「日本」", "a–b—c−d‐e", "§ ¶ † ‡ • … ‰ ′ ″ ∑∏√∞≠≤≥ ←↑→↓ ■□▲△",
  "😀 😀😀 👍🏽 👨‍👩‍👧‍👦 🇩🇪🇫🇷 ❤️ ☎️ 1️⃣ 🦙", "x😀y", " 😀", "e\u0301 o\u0308 n\u0303", "Z͑ͫ̓ͪ̂ͫ̽͏̴̙̤̞͉͚̯̞̠͍A̴̵̜̰͔ͫ͗͢L̠ͨͧͩ͘G̴̻͈͍͔̹̑͗̎̅͛́O", "\u0301start", " \u0301", "1\u0301", "!\u0301", "\u093F\u093F",
  "한\u1112\u1161\u11AB", "ﬁ ﬂ ﬀ ㎏ ℃ №", "ſ 'ſ Kelvin K 'K", "¡Hola! ¿Qué?", "ab\u00ADcd", "\u202Ertl\u202C", "�", "\uE000\uF8FF", "\u0000\u0001\u007F", "\u{10FFFF}\u{F0000}",
  "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa", "=".repeat(80), "-".repeat(79), " ".repeat(100), "\n".repeat(100), "\t".repeat(33), "ha".repeat(60), "0".repeat(50), "你".repeat(40), "。".repeat(20),
  "<|im_start|>user\nHi<|im_end|>\n<|im_start|>assistant\n", "<|endoftext|>", "<s>[INST] x [/INST]</s>", "<|begin_of_text|><|start_header_id|>user<|end_header_id|>\n\nHi<|eot_id|>", "<think>\nhm\n</think>\n\nok",
  "<｜begin▁of▁sentence｜><｜User｜>hi<｜Assistant｜>", "<|start|>assistant<|channel|>final<|message|>x<|return|>", "<tool_call>{}</tool_call>", "<|im_start", "<<|im_end|>>", "<unk>", "<0x0A>", "▁", "a▁b ▁", "Ġ Ċ ĉ", "Ġword",
];

// A small generator, so that the texts are the same everywhere (mulberry32).
function random(seed) {
  return () => {
    seed = (seed + 0x6d2b79f5) | 0;
    let t = Math.imul(seed ^ (seed >>> 15), 1 | seed);
    t = (t + Math.imul(t ^ (t >>> 7), 61 | t)) ^ t;
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

// Pieces that meet at random: what one rule does at the end of another's match.
const pieces = [
  " ", " ", "  ", "\n", "\r\n", "\t", "a", "B", "word", "Word", "WORD", "é", "e\u0301", "ß", "я", "中", "文", "の", "カ", "한", "ไ", "ก็", "क्", "षि", "م", "1", "22", "345", "٣", "½", "'s", "'T", "'ll", "'", "’", ".", ",",
  "!", "?", "/", "-", "_", "(", ")", "\"", "#", "$", "€", "+", "=", "<", ">", "|", "~", "^", "`", "😀", "👍🏽", "\u200D", "\u00A0", "\u3000", "ʰ", "ǅ", "Ⅷ", "\u0903", "…", "“", "。", "，", "@", "\\", "{", "}",
];

export function comparisonTexts() {
  const next = random(20260101);
  const texts = [...scripts, ...traps];
  for (const text of scripts) texts.push(` ${text}\n\n${text.toUpperCase()} ${text.split(" ").reverse().join("  ")}`);
  for (let i = 0; i < 400; ++i) {
    let text = "";
    for (let n = 1 + Math.floor(next() * 14); n > 0; --n) text += pieces[Math.floor(next() * pieces.length)];
    texts.push(text);
  }
  return texts;
}
