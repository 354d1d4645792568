if exists('b:did_ftplugin')
  finish
endif
let b:did_ftplugin = 1

setlocal commentstring=//\ %s comments=s1:/*,mb:*,ex:*/,:///,://
setlocal expandtab shiftwidth=4 softtabstop=4 cindent cinoptions=(s,m1,J1,j1
let &l:makeprg = 'umklapp check %'
setlocal errorformat=%Eerror:\ %m,%Wwarning:\ %m,%C\ -->\ %f:%l:%c,%-C%.%#

let b:undo_ftplugin = 'setlocal commentstring< comments< expandtab< shiftwidth< softtabstop< cindent< cinoptions< makeprg< errorformat<'
