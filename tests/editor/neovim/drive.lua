-- What a person does in Neovim, with its own functions; what was seen goes into the file $MUGRAPH_SEEN.
local seen = { times = {} }
local begin = vim.loop.hrtime()

local function note(what) seen.times[what] = math.floor((vim.loop.hrtime() - begin) / 1e6) end

local function finish(problem)
  seen.problem = problem
  local file = assert(io.open(os.getenv("MUGRAPH_SEEN"), "w"))
  file:write(vim.fn.json_encode(seen))
  file:close()
  vim.cmd("qall!")
end

local function until_true(what, limit, condition)
  if not vim.wait(limit, condition, 20) then error(what .. ": not within " .. limit .. " ms") end
end

local function lines() return table.concat(vim.api.nvim_buf_get_lines(0, 0, -1, false), "\n") .. "\n" end

local function ask(method, params)
  for _, answer in pairs(vim.lsp.buf_request_sync(0, method, params, 10000) or {}) do
    if answer.result then return answer.result end
  end
end

local function here()
  local client = (vim.lsp.get_clients or vim.lsp.get_active_clients)()[1]
  return vim.lsp.util.make_position_params(0, client.offset_encoding)
end

local function drive()
  vim.cmd("edit " .. os.getenv("MUGRAPH_FILE"))
  seen.before = lines()
  local found
  until_true("a diagnostic", 90000, function()
    for _, diagnostic in ipairs(vim.diagnostic.get(0)) do
      local code = diagnostic.code or (diagnostic.user_data and diagnostic.user_data.lsp and diagnostic.user_data.lsp.code)
      if diagnostic.source == "mugraph" and code == "improved" then found = diagnostic end
    end
    return found ~= nil
  end)
  note("diagnostic")
  seen.diagnostic = { message = found.message, line = found.lnum, severity = found.severity }
  vim.api.nvim_win_set_cursor(0, { found.lnum + 1, found.col + 8 })

  begin = vim.loop.hrtime()
  local hover = ask("textDocument/hover", here())
  note("hover")
  seen.hover = hover and hover.contents.value

  seen.lenses = {}
  for _, lens in ipairs(ask("textDocument/codeLens", { textDocument = vim.lsp.util.make_text_document_params() }) or {}) do
    table.insert(seen.lenses, lens.command.title)
  end

  -- Neovim asks, resolves and applies by itself; only the choice is made here.
  seen.actions = {}
  vim.ui.select = function(items, options, choose)
    for _, item in ipairs(items) do
      local title = (options.format_item or tostring)(item)
      table.insert(seen.actions, title)
      if title:find("Replace with", 1, true) then return choose(item) end
    end
  end
  vim.lsp.buf.code_action()
  until_true("the code action's edit", 20000, function() return lines():find("mugraph_kernels.", 1, true) ~= nil end)
  seen.applied = lines()
  vim.cmd("silent! wall")
  vim.cmd("undo")
  seen.undone = lines()
end

-- After the start-up, so that events reach the autocommands as they do for a person.
vim.defer_fn(function()
  local worked, problem = pcall(drive)
  finish(not worked and tostring(problem) or nil)
end, 50)
