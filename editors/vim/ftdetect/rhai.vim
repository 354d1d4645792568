autocmd BufNewFile,BufRead *.rhai setfiletype rhai
