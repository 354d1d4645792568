if exists('b:current_syntax')
  finish
endif

syntax keyword rhaiStatement let const fn private import export as global
syntax keyword rhaiControl if else switch do while until loop for in continue break return throw try catch
syntax keyword rhaiBoolean true false
syntax keyword rhaiSpecial this I args ans
syntax match rhaiNumber "\<\d[0-9_]*\(\.\d[0-9_]*\)\?\([eE][+-]\?\d\+\)\?\>"
syntax match rhaiNumber "\<0\(x[0-9A-Fa-f_]\+\|o[0-7_]\+\|b[01_]\+\)\>"
syntax match rhaiModule "\<\h\w*\ze::"
syntax match rhaiFunction "\<\h\w*\ze("
syntax region rhaiString start=+"+ skip=+\\.+ end=+"\|$+
syntax region rhaiString start=+`+ end=+`+ contains=rhaiInterpolation
syntax region rhaiInterpolation matchgroup=rhaiMark start=+\${+ end=+}+ contained contains=TOP
syntax match rhaiString "'\([^'\\]\|\\[^']*\)'"
syntax match rhaiComment "//.*$"
syntax match rhaiDoc "//[/!].*$"
syntax region rhaiComment start="/\*" end="\*/"

highlight default link rhaiStatement Keyword
highlight default link rhaiControl Conditional
highlight default link rhaiBoolean Boolean
highlight default link rhaiSpecial Special
highlight default link rhaiNumber Number
highlight default link rhaiModule Type
highlight default link rhaiFunction Function
highlight default link rhaiString String
highlight default link rhaiMark Special
highlight default link rhaiComment Comment
highlight default link rhaiDoc SpecialComment

let b:current_syntax = 'rhai'
